"""Rules that hold for every test: no asyncio task is left behind, and in CI no integration test is skipped."""

import asyncio
import gc
import inspect
import os
from pathlib import Path

import pytest
from hypothesis import settings

INTEGRATION = Path(__file__).parent / "integration"
REQUIRED = bool(os.environ.get("CI") or os.environ.get("MOORAGE_REQUIRE_CONTROLPLANE"))

# A test asserts behaviour, never time, so no example has a deadline; in CI the examples are always the same.
settings.register_profile("moorage", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("moorage")


def pytest_configure():
    """Say that this thread has no loop; pytest-asyncio would make one by looking for it, and never close it."""
    asyncio.set_event_loop(None)


@pytest.fixture
async def _watched_loop():
    """Fails the test that leaves tasks running. Set up first, so it looks when all other fixtures are done."""
    yield
    for _ in range(5):  # tasks that were told to stop need a turn or two to end
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if left:
        pytest.fail("asyncio tasks left behind:\n" + "\n".join(map(repr, left)))


@pytest.fixture(autouse=True, scope="module")
def _leaks_show_where_they_are_made():
    """What was left open is found by the collector; that it is, in some later file, would blame the wrong test."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def no_leaked_tasks(request):
    """Watches async tests only: a loop for each of the others would cost more than they do."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_watched_loop")


def pytest_collection_modifyitems(items):
    """Whatever lies in tests/integration is an integration test."""
    for item in items:
        if INTEGRATION in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where the control plane must be there (CI), a skipped integration test is a failed one."""
    report = yield
    if (
        REQUIRED
        and report.skipped
        and not hasattr(report, "wasxfail")
        and item.get_closest_marker("integration")
    ):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI does not allow: {call.excinfo.value}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """The same for a whole module of integration tests."""
    report = yield
    if REQUIRED and report.skipped and INTEGRATION in getattr(collector, "path", Path()).parents:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, which CI does not allow"
    return report
