"""Deliberate mistakes, each of which some test must notice: `make mutants`."""
