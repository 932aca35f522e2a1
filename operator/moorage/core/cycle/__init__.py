"""One scheduling cycle: find the feasible nodes, score them, pick one.  Reads top to bottom in ``scheduling_cycle``."""
