"""The tests, as one package, so that `tests.controlplane` and `tests.kit` can be imported and run by name."""
