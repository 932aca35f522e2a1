"""``moorage what-if``: where pods would go in a cluster as it is, or as it could be."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import click
import orjson

from moorage.adapters.kube.validate import Problem
from moorage.cli.cluster import Cluster, Intake, Source
from moorage.cli.explain import cluster_options, engine_config, fail, take_in
from moorage.cli.live_cluster import BAD_INPUT, read_cluster
from moorage.cli.manifests import find, read
from moorage.cli.plugin_files import load_plugins
from moorage.cli.render import progress
from moorage.cli.templates import Template, template_of
from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.answers import PluginError
from moorage.core.inquiry.placing import Capacity, Elsewhere, Placed, capacity, elsewhere, place_all
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef

PLACED, NOT_ALL_PLACED = 0, 3


@dataclass(slots=True)
class Answer:
    """What would happen.  ``groups`` names the pods of each template of the manifest, in their order."""

    before: Cluster
    placed: list[Placed] = field(default_factory=list)
    groups: dict[str, list[Placed]] = field(default_factory=dict)
    fits: dict[str, Capacity] = field(default_factory=dict)
    elsewhere: list[Elsewhere] = field(default_factory=list)
    judged: int = 0  # pods on nodes that the policies are about

    @property
    def complete(self) -> bool:
        """Whether every pod has a node."""
        return all(placed.node is not None for placed in self.placed)

    @property
    def bound(self) -> list[Pod]:
        """The pods on nodes afterwards."""
        gone = {victim.uid for placed in self.placed for victim in placed.victims}
        stay = [pod for pod in self.before.bound if pod.uid not in gone]
        return stay + [
            replace(placed.pod, node_name=placed.node)
            for placed in self.placed
            if placed.node is not None and placed.pod.uid not in gone
        ]


@click.command("what-if", short_help="Tell where pods would go in a cluster as it is, or could be.")
@click.option(
    "-f",
    "--file",
    "manifests",
    multiple=True,
    metavar="FILE",
    help="Pods and workloads that might come; without, the cluster's own pending pods are asked about. Repeatable.",
)
@click.option("--replicas", type=click.IntRange(0), metavar="N", help="So many pods of each template.")
@click.option(
    "--capacity", "ask_capacity", is_flag=True, help="Count how many pods of each template would fit."
)
@click.option("--with-pending", is_flag=True, help="Place the cluster's own pending pods, too.")
@click.option("--policy", "policies", multiple=True, metavar="FILE", help="Policies in force. Repeatable.")
@click.option(
    "--cordon", "cordoned", multiple=True, metavar="NODE", help="A node that takes no more. Repeatable."
)
@click.option(
    "--add-node", "added", multiple=True, metavar="FILE", help="Nodes that are there, too. Repeatable."
)
@click.option(
    "--remove-pod", "removed", multiple=True, metavar="NS/NAME", help="A pod that is gone. Repeatable."
)
@cluster_options
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "html"]), default="table", show_default=True
)
def what_if(
    manifests: tuple[str, ...],
    replicas: int | None,
    ask_capacity: bool,
    with_pending: bool,
    policies: tuple[str, ...],
    cordoned: tuple[str, ...],
    added: tuple[str, ...],
    removed: tuple[str, ...],
    files: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    plugins: tuple[str, ...],
    node_ready_guard: bool,
    output: str,
) -> None:
    """Tell where the pods of a manifest would go, how many would fit, who would be evicted, and what a policy changes.

    The cluster is listed once (or read from --cluster FILE), and nothing is ever written to it. A Deployment,
    ReplicaSet, StatefulSet, ReplicationController or Job stands for its pods. With --policy, the pods on nodes that
    the policies would place elsewhere are named.

    Exit status 0: every pod would find a node; 3: some would not; 2: the input is broken.

    \b
    Examples:
      moorage what-if -f deployment.yaml --replicas 50
      moorage what-if -f pod.yaml --capacity
      moorage what-if -f job.yaml --cordon node-7 --add-node big-node.yaml
      moorage what-if -f deployment.yaml -o html > after.html
      moorage what-if --policy policies/ -o json | jq .elsewhere
    """
    now = time.time()
    additions = load_plugins(plugins)
    base = Intake(unknown_is_wrong=False, additions=additions)
    take_in(base, files, kubeconfig, context)
    for key in removed:
        if not base.drop("Pod", *key.rpartition("/")[::2]):
            fail(f"--remove-pod: there is no pod {key}; it must be NAMESPACE/NAME")
    templates = _templates(base, manifests, replicas)
    for path in find(added, base.problems):
        for obj, source in read(path, base.problems):
            base.add(obj, source)
    _end_if_broken(base.errors)
    rules = [item for path in find(policies, base.problems) for item in read(path, base.problems)]
    _end_if_broken(base.errors)
    plain = read_cluster(base, now, strict=bool(files)) if policies else None
    cluster = read_cluster(base, now, strict=bool(files)) if plain is None else _under(base, rules, now)
    for each in (cluster, plain):
        if each is not None:
            _cordon(each, cordoned)
    pods = list(cluster.asked)
    pending = [p for p in cluster.waiting if not p.deleting] if with_pending or not manifests else []
    pods += sorted(pending, key=lambda pod: (-pod.priority, pod.created))
    engine_of = engine_config(config, [*pods, *cluster.bound], additions, node_ready_guard=node_ready_guard)
    try:
        answer = ask(cluster, plain, templates, pods, engine_of, now, refs=_refs(rules), count=ask_capacity)
    except PluginError as error:
        fail(str(error))
    if output == "json":
        from moorage.cli.what_if_text import answer_record

        click.echo(orjson.dumps(answer_record(answer), option=orjson.OPT_INDENT_2).decode())
    elif output == "html":
        from moorage.cli.pages import answer_page

        click.echo(answer_page(answer))
    else:
        from moorage.cli.what_if_text import show_answer

        show_answer(answer)
    sys.exit(PLACED if answer.complete else NOT_ALL_PLACED)


def ask(
    cluster: Cluster,
    plain: Cluster | None,
    templates: Sequence[tuple[Template, int]],
    pods: Sequence[Pod],
    config: EngineConfig,
    now: float,
    *,
    refs: Collection[PolicyRef] = (),
    count: bool = False,
) -> Answer:
    """What would happen; ``plain`` is the cluster without the policies ``refs``, None if there are none.

    ``pods`` are those of the templates, in their order, and then others.  Raises PluginError.
    """
    answer = Answer(cluster)
    if plain is not None:
        before, after = plain.engine(config, now), cluster.engine(config, now)
        concerned = [pod for pod in cluster.bound if _concerns((before, after), pod, refs)]
        answer.judged = len(concerned)
        with progress("judging pods on nodes") as advance:
            for done, pod in enumerate(concerned):
                advance(done, len(concerned))
                answer.elsewhere += elsewhere(before, after, [pod], now)
    if count:
        start = 0
        for template, number in templates:
            if number:
                answer.fits[template.name] = capacity(cluster.engine(config, now), pods[start], now)
            start += number
    engine = cluster.engine(config, now)
    with progress("placing pods") as advance:
        for placed in place_all(engine, pods, now):
            answer.placed.append(placed)
            advance(len(answer.placed), len(pods))
    rest = iter(answer.placed)
    for template, number in templates:
        answer.groups[template.name] = [next(rest) for _ in range(number)]
    if others := list(rest):
        answer.groups["pending pods of the cluster"] = others
    return answer


def _concerns(engines: Sequence[Engine], pod: Pod, refs: Collection[PolicyRef]) -> bool:
    """Whether one of these policies is, or was, in force for the pod."""
    return any(p.ref in refs for engine in engines for p in engine.policies.shaping(pod).merged.policies)


def _refs(rules: Sequence[tuple[object, Source]]) -> frozenset[PolicyRef]:
    """The policies in what was read of their files."""
    found = set()
    for obj, source in rules:
        for item, _ in Intake.items_of(obj, source):
            if isinstance(item, Mapping) and isinstance(item.get("metadata"), Mapping):
                of_cluster = item.get("kind") == "ClusterSchedulingPolicy"
                space = "" if of_cluster else str(item["metadata"].get("namespace", "default"))
                found.add(PolicyRef(space, str(item["metadata"].get("name"))))
    return frozenset(found)


def _templates(intake: Intake, manifests: Sequence[str], replicas: int | None) -> list[tuple[Template, int]]:
    """Take the manifests in: pods that they stand for are asked about, the rest is part of the cluster."""
    found = []
    for path in find(manifests, intake.problems):
        for obj, source in read(path, intake.problems):
            for item, where in intake.items_of(obj, source):
                template = template_of(item, where)
                if template is None:
                    intake.add(item, where)
                    continue
                number = template.count if replicas is None else replicas
                found.append((template, number))
                if template.companion is not None:
                    intake.add(template.companion, where)
                for pod in template.pods(number):
                    intake.add_pod(pod, where)
    if manifests and not found and not intake.errors:
        fail("there is no pod and no workload in the manifests of -f")
    return found


def _under(intake: Intake, rules: Sequence[tuple[object, Source]], now: float) -> Cluster:
    """The cluster with these policies, which take the place of those of the same name."""
    heard = len(intake.errors)
    for obj, source in rules:
        for item, where in intake.items_of(obj, source):
            for ref in _refs([(item, where)]):
                kind = "SchedulingPolicy" if ref.namespace else "ClusterSchedulingPolicy"
                intake.drop(kind, ref.namespace, ref.name)
            intake.add(item, where)
    cluster = intake.cluster(now)
    ours = {source.file for _, source in rules}
    _end_if_broken([problem for problem in intake.errors[heard:] if problem.file in ours])
    return cluster


def _end_if_broken(problems: Sequence[Problem]) -> None:
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    if problems:
        sys.exit(BAD_INPUT)


def _cordon(cluster: Cluster, names: Sequence[str]) -> None:
    known = {node.name: place for place, node in enumerate(cluster.nodes)}
    for name in names:
        if name not in known:
            fail(f"--cordon: there is no node {name}")
        cluster.nodes[known[name]] = replace(cluster.nodes[known[name]], unschedulable=True)
