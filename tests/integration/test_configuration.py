"""A configuration file and the real API server: profiles by name, and a change without a restart."""

from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator


def _profile(name: str, strategy: str) -> dict[str, Any]:
    args = {
        "scoringStrategy": {
            "type": strategy,
            "resources": [{"name": "cpu", "weight": 1}],
        }
    }
    return {
        "schedulerName": name,
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    }


def _write(path: Path, *profiles: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump({"profiles": list(profiles)}))


def _pods(cluster: Client, name: str, scheduler: str, want: str) -> None:
    cluster.create(pod(name, cpu="100m", scheduler=scheduler))
    cluster.wait_for(lambda: cluster.node_of(name), 10, f"{name} gets a node")
    assert cluster.node_of(name) == want


def test_profiles_and_their_change(control_plane: ControlPlane, cluster: Client, tmp_path: Path) -> None:
    """Each name is scheduled by its profile; a broken file changes nothing; names come and go with the file."""
    config = tmp_path / "config.yaml"
    _write(config, _profile("pack", "MostAllocated"), _profile("spread", "LeastAllocated"))
    cluster.apply([node("busy", cpu="8"), node("idle", cpu="8")])
    cluster.apply([pod("there", cpu="2", nodeName="busy")])
    with Operator(control_plane, "--config", str(config)) as operator:
        _pods(cluster, "packed", "pack", "busy")
        _pods(cluster, "spread", "spread", "idle")
        cluster.create(pod("early", cpu="100m", scheduler="new"))

        config.write_text("profiles: [{schedulerNme: pack}]\n")
        cluster.wait_for(lambda: operator.metric("moorage_config_stale") == 1, 10)
        assert "profiles[0].schedulerNme: is not supported" in operator.log
        assert "stays in force" in operator.log
        _pods(cluster, "packed-still", "pack", "busy")

        _write(config, _profile("pack", "LeastAllocated"), _profile("new", "MostAllocated"))
        cluster.wait_for(lambda: cluster.node_of("early") == "busy", 15, "a pod from before its profile")
        _pods(cluster, "packed-no-more", "pack", "idle")
        assert operator.metric("moorage_config_stale") == 0
        assert operator.metric("moorage_config_changes_total", outcome="accepted") == 1
        cluster.create(pod("late", cpu="100m", scheduler="spread"))
        _pods(cluster, "other", "new", "busy")
        assert not cluster.node_of("late")


def test_an_option_that_contradicts_the_file(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    _write(config, _profile("pack", "MostAllocated"))
    operator = Operator(control_plane, "--config", str(config), "--scheduler-name", "other", wait=False)
    assert operator.process.wait(60) == 1
    assert "the profiles are for pack, but --scheduler-name says other" in operator.log


def test_a_broken_file_at_the_start(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("parallelism: 0\nprofiles: [{policy: 1}]\n")
    operator = Operator(control_plane, by_kopf=True, wait=False, MOORAGE_CONFIG=str(config))
    assert operator.process.wait(60) != 0
    assert f"{config}: parallelism: must be between 1 and" in operator.log
    assert f"{config}: profiles[0].policy: is not supported" in operator.log
