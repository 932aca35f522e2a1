"""Kubernetes over raw JSON: client, watches, lease, permissions, and the writers on top of them.

No generated model classes and no decisions: what arrives becomes a value of ``core.model``, what the
core decided becomes a request.  Tests replace the API server (``tests/kit/fake_api.py``), not the client.
"""
