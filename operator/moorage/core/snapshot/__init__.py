"""The cluster at one instant, as columns: one row a node, one array a property.

Rows are stable: a node keeps its row for as long as it exists, and a freed row is used again.
Everything here is changed only through ``core.cache``; plugins get read-only views (``view.Nodes``).
"""
