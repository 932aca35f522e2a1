"""SchedulingPolicies, from raw objects to the core's model: reading, checking, and compiling expressions.

Nothing here talks to a cluster; what does not depend on a cluster can be said of a file, too.
"""
