"""Plugins that users write: declared by decorators, loaded from files and installed packages, run as the core's own.

``declare`` is what a user's file imports; it must stay cheap.  ``nodes`` and ``pod`` are what a user's function is
given; ``answers`` holds what it gives back to its contract; ``adapted`` makes a plugin of the core of it; ``loading``
finds the files; ``refresh`` keeps the data of stateful ones fresh.
"""
