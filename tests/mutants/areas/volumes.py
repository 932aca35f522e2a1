"""Plugins about volumes, and what they share."""

from tests.mutants.mutation import plugin

_LAWS = "tests/laws/test_volume_plugins.py"
_restrictions = plugin("VolumeRestrictions", "volume_restrictions", _LAWS)
_limits = plugin("NodeVolumeLimits", "node_volume_limits", _LAWS)
_zone = plugin("VolumeZone", "volume_zone", _LAWS)
_binding = plugin("VolumeBinding", "volume_binding", _LAWS)
_matching = _binding.elsewhere(
    "core/framework/volume_matching.py", "tests/core/framework/test_volume_matching.py", _LAWS
)
_scoring = _binding.elsewhere(
    "core/framework/volume_scoring.py", "tests/core/framework/test_volume_scoring.py"
)
_claims = _binding.elsewhere("core/framework/pod_claims.py", "tests/core/framework/test_pod_claims.py")
_progress = _binding.elsewhere(
    "core/framework/volume_progress.py", "tests/core/framework/test_volume_progress.py"
)

MUTATIONS = (
    _restrictions.mutation("a claim in use is free", "if state.taken > 0 else", "if state.taken > 1 else"),
    _restrictions.mutation(
        "the access mode does not matter",
        "if READ_WRITE_ONCE_POD in claim.access_modes:",
        "if claim.access_modes:",
    ),
    _restrictions.mutation(
        "evicted users still count",
        "_uses(added, state.single) - _uses(removed, state.single)",
        "_uses(added, state.single)",
    ),
    _restrictions.mutation(
        "disks are shared",
        ".rows_in_conflict(state.disks))] = True",
        ".rows_in_conflict(state.disks))] = False",
    ),
    _restrictions.mutation(
        "the claim comes before the disk",
        "taken = ~mounted if state.taken",
        "taken = ~nodes.false() if state.taken",
    ),
    _restrictions.mutation(
        "claims of other namespaces", "    if gone.namespace != pod.namespace:\n        return False\n", ""
    ),
    _restrictions.mutation(
        "a missing claim may come by preemption",
        "not found',), Code.UNRESOLVABLE)",
        "not found',), Code.UNSCHEDULABLE)",
    ),
    _limits.mutation(
        "one volume too few",
        "attached.counts(driver) + new > limits",
        "attached.counts(driver) + new >= limits",
    ),
    _limits.mutation("a volume in use counts again", "new[list(rows)] -= 1", "new[list(rows)] -= 0"),
    _limits.mutation(
        "an overfull node takes nothing", "(new > 0) & (limits < NO_LIMIT)", "(limits < NO_LIMIT)"
    ),
    _limits.mutation(
        "no driver is needed", "return driver is not None and driver.needed_on_node", "return False"
    ),
    _limits.mutation(
        "someone else's claim will do",
        "if use.ephemeral and claim.owner != pod.uid:",
        "if use.ephemeral and claim.owner == pod.uid:",
    ),
    _limits.mutation(
        "a lower limit wakes",
        "_limit(limit) > _limit(before.limits[driver])",
        "_limit(limit) != _limit(before.limits[driver])",
    ),
    _limits.mutation(
        "pods without volumes wake", "return bool(gone.volumes.claims or gone.volumes.in_tree)", "return True"
    ),
    _zone.mutation("refuses the right zone", "fits &= matched", "fits &= ~matched"),
    _zone.mutation("nodes without labels fail", "(constrained & ~fits)[None, :]", "(~fits)[None, :]"),
    _zone.mutation(
        "the newer label does not do", "missing & nodes.satisfying(", "missing & ~nodes.satisfying("
    ),
    _zone.mutation(
        "one zone of several",
        "zones = {zone.strip() for zone in value.split(MULTI_ZONE_DELIMITER)}",
        "zones = {value.strip()}",
    ),
    _zone.mutation("an unreadable label counts", 'if "" not in zones:', "if zones:"),
    _zone.mutation(
        "a claim that waits is an error",
        "return None if storage_class.waits_for_consumer else",
        "return None if not storage_class.waits_for_consumer else",
    ),
    _zone.mutation(
        "ephemeral claims are looked up",
        "if not use.ephemeral:\n                found",
        "if use.name:\n                found",
    ),
    _zone.mutation(
        "a volume that stays wakes",
        "return event.old is None or list(",
        "return event.old is not None or list(",
    ),
    _binding.mutation(
        "unbound immediate claims pass", "if claims.immediate:", "if claims.immediate and claims.delayed:"
    ),
    _binding.mutation("nothing is promised", "snapshot.storage.reservations.begin(", "isinstance(snapshot, "),
    _binding.mutation("what is shown is written again", "if shown.claim != ref:", "if ref:"),
    _binding.mutation("the node is not written", "!= node_name\n        ]", "== node_name\n        ]"),
    _binding.mutation(
        "the promise is kept",
        "snapshot.storage.reservations.end(pod.uid)",
        "snapshot.storage.reservations.get(pod.uid)",
    ),
    _binding.mutation(
        "less room wakes", "(before is None or after > before)", "(before is None or after < before)"
    ),
    _binding.mutation(
        "the same topologies wake",
        "event.old.topologies != event.new.topologies",
        "event.old.topologies == event.new.topologies",
    ),
    _matching.mutation(
        "the exact size is too small",
        "volume.capacity >= _size(claim)",
        "volume.capacity > _size(claim)",
    ),
    _matching.mutation(
        "the largest volume", "_rank(candidate) < _rank(best)", "_rank(candidate) > _rank(best)"
    ),
    _matching.mutation("a volume for two claims", "                taken.add(volume.name)\n", ""),
    _matching.mutation(
        "access modes do not matter",
        "and set(claim.access_modes) <= set(volume.access_modes)",
        "",
    ),
    _matching.mutation("a released volume is free", "and volume.phase == _AVAILABLE", ""),
    _matching.mutation("the exact room is too small", "capacity.limit >= size", "capacity.limit > size"),
    _matching.mutation("provisions for any class", 'in ("", NO_PROVISIONER)', 'in ("",)'),
    _matching.mutation(
        "topologies of the class do not matter",
        'not storage_class.topologies.matches("", labels)',
        "False",
    ),
    _matching.mutation(
        "any of the requirements",
        "all(r.admits(labels.get(r.key)) for r in term.expressions)",
        "any(r.admits(labels.get(r.key)) for r in term.expressions)",
    ),
    _scoring.mutation(
        "not rounded", "(2 * total + len(classes)) // (2 * len(classes))", "total // len(classes)"
    ),
    _scoring.mutation("a shape upside down", "((0, 10), (100, 0))", "((0, 0), (100, 10))"),
    _claims.mutation("a lost claim is none", 'if claim.phase == "Lost":', 'if claim.phase == "lost":'),
    _claims.mutation(
        "a claim that names a volume waits",
        "if waits and not claim.volume_name else",
        "if waits else",
    ),
    _claims.mutation(
        "a dying claim will do",
        "        if claim.deleting:\n",
        "        if claim.deleting and use.ephemeral:\n",
    ),
    _progress.mutation(
        "done before the claim is bound",
        "return GivenUp(f'ClaimRef got reset for pv \"{volume.name}\"')\n    return Progress.DONE if claim.bound",
        "return GivenUp(f'ClaimRef got reset for pv \"{volume.name}\"')\n    return Progress.DONE if claim",
    ),
    _progress.mutation(
        "old news counts",
        "int(shown.resource_version) < int(ours)",
        "int(shown.resource_version) > int(ours)",
    ),
)
