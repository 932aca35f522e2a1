"""Drives the core: carries events in and instructions out, on asyncio.  Knows no Kubernetes client."""
