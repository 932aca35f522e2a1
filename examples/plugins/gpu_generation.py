"""Keep pods to the generation of GPUs that they were built for.

A pod says so by the label ``example.com/gpu-generation``, one value or several, separated by a point:
``hopper`` or ``ampere.hopper``.  Nodes carry the label ``example.com/gpu-generation`` with what they have.
Pods that ask for no GPU are left alone.
"""

import moorage

GPU = "nvidia.com/gpu"
LABEL = "example.com/gpu-generation"


@moorage.filter(wakes_on=["node-labels", "node-allocatable"], preemption_helps=False)
def gpu_generation(pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.FilterAnswer:
    """The node's generation is one of those that the pod names."""
    wanted = pod.labels.get(LABEL, "")
    if not pod.request(GPU) or not wanted:
        return True
    generations = wanted.split(".")
    return nodes.label(LABEL).isin(
        generations
    ), f"node(s) had no GPU of generation {' or '.join(generations)}"


@moorage.pre_filter(wakes_on=["node-labels", "node-allocatable"])
def gpu_generation_exists(pod: moorage.Pod, nodes: moorage.Nodes) -> moorage.PreFilterAnswer:
    """Say it once, and clearly, if a pod names a generation that no node of the cluster has."""
    wanted = pod.labels.get(LABEL, "")
    if not pod.request(GPU) or not wanted or nodes.label(LABEL).isin(wanted.split(".")).any():
        return None
    return f"no node has a GPU of generation {wanted.replace('.', ' or ')}"
