"""Decides.  Synchronous and deterministic: no clock, no randomness of its own, no I/O, no Kubernetes client."""
