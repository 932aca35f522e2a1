"""Who is next, who waits for what, and who was promised a node."""
