"""The plugin contract (``interface``) and the machinery that calls plugins (``runner``)."""
