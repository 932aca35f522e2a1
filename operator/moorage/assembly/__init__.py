"""The parts that the composition root is put together from."""
