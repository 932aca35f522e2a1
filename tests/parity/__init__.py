"""Moorage and kube-scheduler decide the same generated cases; see README.md."""
