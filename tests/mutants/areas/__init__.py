"""The mistakes, one file an area; each module here has its own in ``MUTATIONS``."""
