"""Helm for the tests of the chart."""

from pathlib import Path

import pytest

from tests.kit.helm import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    home: Path = tmp_path_factory.mktemp("helm")
    return Helm(home)
