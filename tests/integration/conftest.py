"""The real control plane as fixtures: one for the whole session, emptied before each test that asks for it."""

from collections.abc import Iterator

import pytest

from tests.controlplane.aio import AsyncClient
from tests.controlplane.build import BuildError, find
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.operator import Operator
from tests.kit.policies_live import PolicyCluster, install_crds


@pytest.fixture(scope="session")
def _session_control_plane() -> Iterator[ControlPlane]:
    try:
        find()
    except BuildError as error:
        pytest.skip(str(error))
    with ControlPlane() as control_plane:
        yield control_plane


@pytest.fixture
def control_plane(_session_control_plane: ControlPlane) -> ControlPlane:
    """The control plane: running, and empty. A test may stop, pause or restart its API server."""
    _session_control_plane.reset()
    return _session_control_plane


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Client:
    """A client for the empty cluster, as its administrator."""
    return control_plane.admin


@pytest.fixture
def acluster(cluster: Client) -> AsyncClient:
    """The same for async tests."""
    return cluster.aio


@pytest.fixture(scope="module")
def _policy_cluster(_session_control_plane: ControlPlane) -> Iterator[PolicyCluster]:
    _session_control_plane.reset()
    install_crds(_session_control_plane.admin)
    with Operator(_session_control_plane, MOORAGE_USAGE_INTERVAL="0.5") as operator:
        yield PolicyCluster(_session_control_plane, operator)
    assert operator.process.returncode == 0, operator.log
    assert "Traceback" not in operator.log


@pytest.fixture
def policies(_policy_cluster: PolicyCluster) -> PolicyCluster:
    """A cluster with policies, and one scheduler for all tests of a module; empty but for these."""
    _policy_cluster.clean()
    return _policy_cluster
