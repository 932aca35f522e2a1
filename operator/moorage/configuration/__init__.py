"""KubeSchedulerConfiguration v1: from a file, or a part of a decision case, to what the engine is made with.

It knows the core's plugins, so it stands above the adapters; it talks to nobody but the file system.
"""
