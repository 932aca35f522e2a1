"""Moorage, a Kubernetes scheduler: it scores every node for every pod and can explain each decision."""

__version__ = "0.1.0"
