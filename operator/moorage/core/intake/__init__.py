"""What events do to the engine's state, one module for each kind of thing that they are about."""
