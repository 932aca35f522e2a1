"""What operators look at: metrics under the names their dashboards know, logs, and the endpoint that serves them.

Listens to what the runtime and the other adapters report; decides nothing and never fails them.
"""
