"""Plugins about amounts, and the strategies by which they score."""

from tests.mutants.mutation import plugin

_fit = plugin("NodeResourcesFit", "node_resources_fit")
_balance = plugin("NodeResourcesBalancedAllocation", "node_resources_balanced_allocation")
_scoring = _fit.elsewhere(
    "core/framework/resource_scoring.py",
    "tests/core/framework/test_resource_scoring.py",
    "tests/core/plugins/test_node_resources_fit.py",
)

MUTATIONS = (
    _fit.mutation(
        "an exact fit is too tight",
        "all_ - taken < amount",
        "all_ - taken <= amount",
    ),
    _fit.mutation(
        "one pod too many",
        "nodes.pod_count >= nodes.allocatable(PODS)",
        "nodes.pod_count > nodes.allocatable(PODS)",
    ),
    _fit.mutation(
        "what is taken does not count",
        "all_ - taken < amount",
        "all_ < amount",
    ),
    _fit.mutation(
        "preemption may help an empty node",
        "never = all_ < amount",
        "never = all_ < 0 * amount",
    ),
    _fit.mutation(
        "no preemption where all of it is asked for",
        "never = all_ < amount",
        "never = all_ <= amount",
    ),
    _fit.mutation(
        "asking for nothing is asking", "if a > 0 and r != PODS and", "if a >= 0 and r != PODS and"
    ),
    _fit.mutation(
        "resources of the cluster are ignored, too",
        " or not is_extended(resource):\n            return False",
        ":\n            return False",
    ),
    _fit.mutation("groups are not ignored", 'or resource.partition("/")[0] in self.ignored_groups', ""),
    _fit.mutation(
        "a resource that shrank wakes", "before.of(r) > after.of(r)", "before.of(r) != after.of(r)"
    ),
    _fit.mutation(
        "a node that is too small wakes",
        "new.allocatable.get(r, 0) < a for r, a in asked",
        "new.allocatable.get(r, 0) < 0 for r, a in asked",
    ),
    _fit.mutation(
        "more pods on a node wake nobody", "for r in (PODS, *(r for r, _ in asked))", "for r, _ in asked"
    ),
    _scoring.mutation(
        "least is most",
        "left = capacity - in_use\n                left -= amount",
        "left = in_use + amount",
    ),
    _scoring.mutation(
        "weights of resources do not count",
        "total += score if weight == 1 else score * weight",
        "total += score",
    ),
    _scoring.mutation("the share is not rounded", "total / divisor + 0.5", "total / divisor"),
    _scoring.mutation(
        "a score of zero counts in the mean",
        "counts = score > 0 if counts is None else counts & (score > 0)",
        "counts = counts",
    ),
    _scoring.mutation(
        "the line goes the other way",
        "result[below] = s0 + np.sign(rise)",
        "result[below] = s1 - np.sign(rise)",
    ),
    _scoring.mutation(
        "no defaults for cpu",
        "if with_defaults and resource.name == CPU:",
        "if False and resource.name == CPU:",
    ),
    _balance.mutation(
        "no difference is made", "gain -= _balance(without, counted)", "gain -= _balance(with_pod, counted)"
    ),
    _balance.mutation("the balance afterwards counts", "gain -= _balance(without, counted)\n", "gain -= 0\n"),
    _balance.mutation("another middle", "gain >>= 1", "gain >>= 2"),
    _balance.mutation("shares are not limited", "return np.minimum(share, 1.0, out=share)", "return share"),
    _balance.mutation(
        "the variance instead of the deviation",
        "np.sqrt(squares / np.maximum(number, 1))",
        "squares / np.maximum(number, 1)",
    ),
    _balance.mutation(
        "pods that ask for nothing count",
        "if any(amount for _, amount in wanted) else Skip.SKIP",
        "if wanted else Skip.SKIP",
    ),
    _balance.mutation("two of three are not halved", "abs((first - second) / 2)", "abs(first - second)"),
)
