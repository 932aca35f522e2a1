"""The scheduler extender protocol (``k8s.io/kube-scheduler/extender/v1``): its JSON, and calling others by it."""
