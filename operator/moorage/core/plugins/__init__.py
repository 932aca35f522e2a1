"""The built-in plugins, one file each, under kube-scheduler's names.  They do not know each other."""
