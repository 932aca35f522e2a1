"""The real control plane as fixtures: one for the whole session, emptied before each test that asks for it."""

from collections.abc import Iterator

import pytest

from tests.controlplane.aio import AsyncClient
from tests.controlplane.build import BuildError, find
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane


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
