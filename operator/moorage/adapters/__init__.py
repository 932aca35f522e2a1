"""Talks: the API server, HTTP clients, telemetry.  Meets the core only through its model."""
