"""`moorage what-if` on manifests."""

import json

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_container, make_node, make_pod
from tests.kit.raw_policies import make_policy


def deployment(kind="Deployment", *, replicas=3, cpu="1", **more):
    labels = {"app": "web"}
    spec = {"containers": [make_container(requests={"cpu": cpu})], **more}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def what_if(tmp_path):
    """Called with the cluster's objects, and the manifests by option."""

    def call(*cluster, options=("-o", "json"), **manifests):
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(cluster))
        words = ["what-if", "--cluster", str(tmp_path / "cluster.yaml")]
        for option, documents in manifests.items():
            path = tmp_path / f"{option}.yaml"
            path.write_text(yaml.safe_dump_all(documents))
            words += [f"--{option.replace('_', '-')}", str(path)]
        return CliRunner().invoke(main, [*words, *options])

    return call


def answer(result, code=0):
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_a_deployment_stands_for_its_pods(what_if):
    found = answer(what_if(make_node("a"), make_node("b"), file=[deployment()]))
    (group,) = found["groups"]
    assert (group["name"], group["asked"], group["placed"]) == ("Deployment default/web", 3, 3)
    assert sum(group["nodes"].values()) == 3
    assert sorted(group["nodes"]) == ["a", "b"]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_other_workloads_do_too(what_if, kind):
    workload = deployment(kind)
    if kind == "ReplicationController":
        workload["apiVersion"], workload["spec"]["selector"] = "v1", {"app": "web"}
    assert answer(what_if(make_node("a"), file=[workload]))["placed"] == 3


def test_replicas_and_what_runs_out(what_if):
    found = answer(what_if(make_node("a"), file=[deployment()], options=("-o", "json", "--replicas", "6")), 3)
    (group,) = found["groups"]
    assert (group["asked"], group["placed"], group["runsOut"]) == (6, 4, {"Insufficient cpu": 1})
    assert group["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_capacity_without_eviction(what_if):
    found = answer(
        what_if(
            make_node("a"),
            make_node("b", allocatable={"pods": "2"}),
            make_pod("low", node="a", cpu="1", priority=-5),
            file=[make_pod("p", cpu="500m")],
            options=("-o", "json", "--capacity"),
        )
    )
    fits = found["capacity"]["Pod default/p"]
    assert (fits["fit"], fits["nodes"], fits["complete"]) == (8, {"a": 6, "b": 2}, True)
    assert fits["runsOut"] == {"Insufficient cpu": 1, "Too many pods": 1}


def test_copies_of_a_pod_are_pods_of_their_own(what_if):
    pod = make_pod("p", cpu="1", status={"nominatedNodeName": "a"})
    found = answer(what_if(make_node("a"), file=[pod], options=("-o", "json", "--replicas", "5")), 3)
    assert found["groups"][0]["pods"] == {
        **{f"default/p-{i}": "a" for i in range(4)},
        "default/p-4": None,
    }


def test_who_would_be_evicted(what_if):
    low = make_pod("low", node="a", cpu="4")
    found = answer(what_if(make_node("a"), low, file=[make_pod("p", cpu="1", priority=10)]))
    assert found["evicted"] == [{"pod": "default/low", "node": "a", "for": "default/p"}]
    assert found["placed"] == 1


def test_changes_of_the_cluster(what_if):
    nodes = [make_node("a"), make_node("b")]
    pod = make_pod("p", cpu="4")
    in_the_way = make_pod("q", node="b", cpu="1")

    def placed(*options, **manifests):
        result = what_if(*nodes, in_the_way, file=[pod], options=("-o", "json", *options), **manifests)
        return json.loads(result.stdout)["groups"][0]["nodes"]

    assert placed() == {"a": 1}
    assert placed("--cordon", "a") == {}
    assert placed("--cordon", "a", "--remove-pod", "default/q") == {"b": 1}
    assert placed("--cordon", "a", add_node=[make_node("c")]) == {"c": 1}


def test_the_pending_pods_of_the_cluster(what_if):
    cluster = (make_node("a"), make_pod("low", cpu="3"), make_pod("high", cpu="3", priority=5))
    found = answer(what_if(*cluster), 3)
    (group,) = found["groups"]
    assert group["pods"] == {"default/high": "a", "default/low": None}
    options = ("-o", "json", "--with-pending")
    both = answer(what_if(*cluster, file=[make_pod("p", cpu="2")], options=options), 3)
    assert [group["name"] for group in both["groups"]] == ["Pod default/p", "pending pods of the cluster"]


def test_whom_a_policy_would_place_elsewhere(what_if):
    spot, dear = make_node("a", labels={"pool": "spot"}), make_node("b", labels={"pool": "dear"})
    policy = make_policy("spot", nodes={"selector": {"matchLabels": {"pool": "spot"}}})
    found = answer(what_if(spot, dear, make_pod("p", node="b"), make_pod("q", node="a"), policy=[policy]))
    assert found["judged"] == 2
    assert [(item["pod"], item["node"], item["with"]) for item in found["elsewhere"]] == [
        ("default/p", "b", "a")
    ]


def test_a_policy_takes_the_place_of_the_one_that_is_there(what_if):
    nodes = [make_node("a", labels={"pool": "x"}), make_node("b", labels={"pool": "y"})]
    old = make_policy("pool", nodes={"selector": {"matchLabels": {"pool": "x"}}})
    new = make_policy("pool", nodes={"selector": {"matchLabels": {"pool": "y"}}})
    found = answer(what_if(*nodes, old, make_pod("p", node="a"), file=[make_pod("new")], policy=[new]))
    assert found["groups"][0]["nodes"] == {"b": 1}
    assert [item["pod"] for item in found["elsewhere"]] == ["default/p"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cordon", "z"), "--cordon: there is no node z"),
        (("--remove-pod", "default/z"), "--remove-pod: there is no pod default/z"),
        (("--remove-pod", "z"), "it must be NAMESPACE/NAME"),
        (("-f", "nowhere.yaml"), "nowhere.yaml"),
        (("--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("--config", "nowhere.yaml"), "--config: nowhere.yaml"),
    ],
)
def test_what_is_wrong_is_named(what_if, options, message):
    result = what_if(make_node("a"), make_pod("p"), options=options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_broken_policy_names_its_field(what_if):
    result = what_if(make_node("a"), policy=[make_policy("x", precedence="high")])
    assert result.exit_code == 2
    assert "precedence" in result.stderr


def test_a_pod_that_is_there_already(what_if):
    result = what_if(make_node("a"), make_pod("p", node="a"), file=[make_pod("p")])
    assert result.exit_code == 2
    assert "pod default/p is listed twice" in result.stderr


def test_manifests_without_pods(what_if):
    result = what_if(make_node("a"), file=[make_node("b")])
    assert (result.exit_code, result.stderr) == (
        2,
        "error: there is no pod and no workload in the manifests of -f\n",
    )


def test_the_table(what_if):
    result = what_if(
        make_node("a"),
        make_pod("low", node="a", cpu="4", priority=-1),
        file=[deployment(replicas=6)],
        options=("--capacity",),
    )
    assert result.exit_code == 3
    for text in (
        "Deployment default/web  4/6",
        "Would be evicted (1)",
        "Capacity",
        "4 of 6 pods would be placed",
    ):
        assert text in result.stdout
    assert all(len(line) <= 100 for line in result.stdout.splitlines())
