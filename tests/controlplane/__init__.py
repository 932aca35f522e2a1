"""A real control plane on loopback for tests, benchmarks and the sandbox: etcd, kube-apiserver,
kube-scheduler.

Importing this package imports nothing: `build` must run with the standard library alone, before anything is
installed.
"""
