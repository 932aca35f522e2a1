"""Benchmarks: figures for people, never assertions.  `make bench` runs them."""
