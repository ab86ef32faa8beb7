"""What every test gets: a home of its own, one thread for torch, and a simulator that is already compiled."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bridge_process import BridgeProcess

if TYPE_CHECKING:
    from hotlap.optimal.lap import Plan

# Before anything imports them: no windows, and thread pools that do not fight over the cores.
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).resolve().parent
# Tests that use one of these talk to a server and are marked `integration` by themselves.
SERVER_FIXTURES = {"bridge_server", "web_server"}
# Tests in these folders step the simulator, so it is compiled before the first of them.
STEPPING_FOLDERS = {"sim", "envs", "drivers", "evaluation", "training", "bridge", "web", "cli", "optimal"}

# Patience with a server that starts, on a machine that is busy with other things.
SERVING_S = 60
# Patience with the one real solve of the fast tests, on a machine that is busy with other things.
SOLVING_S = 180

pytest_plugins = ("trained_models",)

HOME = pytest.StashKey[tuple[str, "str | None"]]()
COMPILE_ERROR = pytest.StashKey[Exception]()


def pytest_configure(config: pytest.Config) -> None:
    """Point HOTLAP_HOME at an empty folder, for us and for every process a test starts.

    Ctrl-C is made to mean what it means at a terminal: who is started in the background inherits a deaf ear to it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    home = tempfile.mkdtemp(prefix="hotlap-tests-")
    config.stash[HOME] = (home, os.environ.get("HOTLAP_HOME"))
    os.environ["HOTLAP_HOME"] = home


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give HOTLAP_HOME back as it was found."""
    home, before = config.stash[HOME]
    if before is None:
        os.environ.pop("HOTLAP_HOME", None)
    else:
        os.environ["HOTLAP_HOME"] = before
    shutil.rmtree(home, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by what a test uses, so that nobody has to remember."""
    for item in items:
        if SERVER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)
            # Whichever of them comes first waits for the server to start. A limit of the test's own goes before.
            item.add_marker(pytest.mark.timeout(SERVING_S))
        if "followed" in getattr(item, "fixturenames", ()):
            # Whichever of them comes first waits for the solver, and nobody times that.
            item.add_marker(pytest.mark.timeout(SOLVING_S))


def steps_the_simulator(item: pytest.Item) -> bool:
    """Whether a test needs compiled code: it says so, or lives where all do."""
    if "compiled" in getattr(item, "fixturenames", ()):
        return True
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    return folder in STEPPING_FOLDERS


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile before the first test's clock starts.

    pytest-timeout counts the set-up of fixtures as part of the test that first asks for them. Its `func_only` would let
    a fixture hang for ever; compiling here keeps fixtures under the limit and compilation out of it.
    """
    if session.config.option.collectonly or not any(map(steps_the_simulator, session.items)):
        return
    try:
        from hotlap.sim.batch_cpu import warm_up

        warm_up()
    except Exception as error:  # what is broken is for the tests to say; one that needs no simulator may still run
        session.config.stash[COMPILE_ERROR] = error


@pytest.fixture(scope="session")
def compiled(pytestconfig: pytest.Config) -> None:
    """A compiled simulator; the work was done in `pytest_collection_finish`."""
    error = pytestconfig.stash.get(COMPILE_ERROR, None)
    if error is not None:
        raise RuntimeError("the simulator did not compile") from error


@pytest.fixture(scope="session")
def followed(compiled: None) -> "tuple[Plan, Plan]":
    """The flying and the standing lap of track-01 as the optimal driver wants them: the fast tests' one real solve."""
    from hotlap.drivers.optimal_follower import FOLLOWER_AIMS
    from hotlap.optimal.lap import solve_flying, solve_standing
    from hotlap.tracks.registry import load_track

    nodes = load_track("track-01").nodes
    return solve_flying(nodes, FOLLOWER_AIMS), solve_standing(nodes, FOLLOWER_AIMS)


@pytest.fixture(scope="session")
def bridge_server(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgeProcess]:
    """A real bridge in a process of its own, ready for clients; BRIDGE_PORT names its port."""
    with BridgeProcess(tmp_path_factory.mktemp("bridge") / "log") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIDGE_PORT", str(server.port))
        yield server
