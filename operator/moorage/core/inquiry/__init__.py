"""Questions to an engine that change nothing: why here, why not there, what would help, how many more."""
