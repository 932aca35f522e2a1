"""The oracle as a fixture: one process for the whole session."""

from collections.abc import Iterator

import pytest

from tests.controlplane.build import BuildError
from tests.parity.build import find
from tests.parity.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """What kube-scheduler says.  Where it is not built the test is skipped, which in CI is a failure."""
    try:
        program = find()
    except BuildError as error:
        pytest.skip(str(error))
    with Oracle(program) as process:
        yield process
