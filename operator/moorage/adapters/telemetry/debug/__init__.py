"""What an operator of the scheduler looks at when something is wrong: dumps, a comparison, where time and memory go.

For people on the same machine only.  Shows names, amounts and counts; never what a pod runs, its environment or
secrets.
"""
