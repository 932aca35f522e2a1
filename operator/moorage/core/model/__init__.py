"""Frozen values that every layer speaks: pods, nodes, selectors, events in, instructions out.

Nothing here does I/O, reads a clock or knows a Kubernetes client; building these values from
API objects is the adapters' work (``adapters.kube.convert``).
"""
