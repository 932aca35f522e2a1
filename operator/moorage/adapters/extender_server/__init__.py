"""Serves the extender protocol to a kube-scheduler; ``adapters/extender`` calls others by it."""
