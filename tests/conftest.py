"""Set-up for every test: its own HOTLAP_HOME, one thread for torch, a compiled simulator, servers."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from bridge_process import BridgeProcess
from fork_server import reseed
from forked_python import start_server
from imported_modules import import_everything, import_modules
from play_process import PlayProcess, enter_drivers
from shared_results import made_once

if TYPE_CHECKING:
    from hotlap.optimal.lap import Plan

# A busy machine is slow, and that is no fault of a test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Set before anything imports these libraries: no windows, and thread pools that do not compete for the cores.
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).resolve().parent
# Tests with one of these fixtures are marked `integration`.
SERVER_FIXTURES = {"bridge_server", "play_server", "web_server"}
# Tests in these folders step the simulator, so it is compiled before the first of them.
STEPPING_FOLDERS = {
    "sim", "envs", "drivers", "evaluation", "training", "models", "reports", "bench", "bridge", "web", "cli", "optimal",
    "attacks", "benchmark", "datasets",
}  # fmt: skip
# Compiles what every process would compile. Two processes do so side by side, forked after what both of them need.
COMPILE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from hotlap.sim import batch_cpu, policy_drive, race_cpu
from sim import worlds
worlds.World([worlds.nodes_of("oval")]).step([0.0, 0.0, 0.0])
if os.fork():
    from hotlap.learning.compiled import learner
    batch_cpu.warm_up(), learner.warm_up(), os.wait()
else:
    from hotlap.benchmark import replay_kernels
    from hotlap.drivers import casual, packed
    from hotlap.evaluation import tick_kernels
    for module in (race_cpu, packed, policy_drive, casual, tick_kernels, replay_kernels):
        module.warm_up()
    from optimal import kernels
    kernels.warm_up()
"""

# These take longest, so they run first, in this order. One process runs a whole file, and the others would wait for it.
LONG_FILES = (
    "test_train_torchrun.py", "test_trainer_resume.py", "test_trainer_bridge.py", "test_model_files.py",
    "test_local_pool.py", "test_documentation.py",
    "test_optimal_follower.py", "test_page_server.py", "test_batch_cuda.py", "test_bridge.py",
    "test_sb3_exchange_export.py", "test_trainer_evaluations.py", "test_remote_vector.py", "test_examples.py",
    "test_shipped_models.py", "test_nan.py", "test_sent_track_files.py", "test_run_processes.py", "test_sweep.py",
)  # fmt: skip

# These fixtures take seconds. Their tests run one after the other, so that few processes have to make each.
SHARED_FIXTURES = ("followed", "play_server", "bridge_server", "racer", "soft_racer", "cartpole", "train")

# A browser and what it opens take seconds to start: so many processes run all tests that use them.
NUM_BROWSERS = 2
BROWSER_FIXTURES = {"shared_browser", "static_page", "web_server"}

# Time limit of the first test that needs the solver, on a busy machine.
SOLVING_S = 180

pytest_plugins = ("bootstrap_project", "forked_workers", "optional_tests", "traces_of_tests", "trained_models")

HOME = pytest.StashKey[tuple[str, "str | None"]]()
COMPILER = pytest.StashKey["subprocess.Popen[bytes]"]()
COMPILE_ERROR = pytest.StashKey[Exception]()
BROWSER_FILES = pytest.StashKey[list[Path]]()


def pytest_configure(config: pytest.Config) -> None:
    """Point HOTLAP_HOME at an empty folder, for this process and every process a test starts.

    Restore the default handling of Ctrl-C as well: a process started in the background inherits that it is ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    open_home(config)
    if config.getoption("workers") and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.stash[COMPILER] = subprocess.Popen([sys.executable, "-c", COMPILE, str(TESTS)])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restore HOTLAP_HOME."""
    close_home(config)


def open_home(config: pytest.Config) -> None:
    """Point HOTLAP_HOME at a new folder."""
    home = tempfile.mkdtemp(prefix="hotlap-tests-")
    config.stash[HOME] = (home, os.environ.get("HOTLAP_HOME"))
    os.environ["HOTLAP_HOME"] = home


def close_home(config: pytest.Config) -> None:
    """Remove that folder and restore HOTLAP_HOME."""
    home, before = config.stash[HOME]
    if before is None:
        os.environ.pop("HOTLAP_HOME", None)
    else:
        os.environ["HOTLAP_HOME"] = before
    shutil.rmtree(home, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests recorded with `record_property("figure", TEXT)`, from every process of the run."""
    reports = (report for group in terminalreporter.stats.values() for report in group)
    for report in reports:
        for name, text in getattr(report, "user_properties", ()) if getattr(report, "when", "") == "call" else ():
            if name == "figure":
                terminalreporter.write_line(text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, and order them for several processes."""
    in_browser = (item for item in items if BROWSER_FIXTURES.intersection(getattr(item, "fixturenames", ())))
    config.stash[BROWSER_FILES] = sorted({item.path for item in in_browser})
    items.sort(key=place_of)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if SERVER_FIXTURES.intersection(fixtures):
            item.add_marker(pytest.mark.integration)
        if "followed" in fixtures:
            item.add_marker(pytest.mark.timeout(SOLVING_S))


def place_of(item: pytest.Item) -> int:
    """Those in a browser first, then the long files, the tests of each shared fixture, and all others as they were."""
    if item.path in item.config.stash[BROWSER_FILES]:
        return -1
    if item.path.name in LONG_FILES:
        return LONG_FILES.index(item.path.name)
    fixtures = getattr(item, "fixturenames", ())
    shared = (place for place, name in enumerate(SHARED_FIXTURES) if name in fixtures)
    return len(LONG_FILES) + next(shared, len(SHARED_FIXTURES))


def pytest_worker_group(item: pytest.Item) -> str | None:
    """The files with tests in a browser are divided among a few processes."""
    paths = item.config.stash[BROWSER_FILES]
    return f"browser {paths.index(item.path) % NUM_BROWSERS}" if item.path in paths else None


def pytest_before_workers() -> None:
    """Do once, before the processes are forked that run the tests, what each of them would do.

    What our commands use is imported, and the simulator loaded. One server forks the commands that the tests start.
    """
    import_everything()
    gc.collect()
    gc.freeze()
    start_server()


def pytest_begin_worker(config: pytest.Config) -> None:
    """Give a process that runs tests a home and random numbers of its own."""
    reseed()
    open_home(config)


def pytest_end_worker(config: pytest.Config) -> None:
    """Remove its home."""
    close_home(config)


def steps_the_simulator(item: pytest.Item) -> bool:
    """Whether a test needs the compiled simulator: by its `compiled` fixture or its folder."""
    if "compiled" in getattr(item, "fixturenames", ()):
        return True
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    return folder in STEPPING_FOLDERS


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile the simulator before the first test starts, and keep what was imported out of every garbage collection.

    pytest-timeout counts the set-up of a fixture as part of the first test that uses it, and compiling takes minutes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # thousands of modules make each collection slow
    if session.config.option.collectonly or not any(map(steps_the_simulator, session.items)):
        return
    try:
        from hotlap.sim import batch_cpu, policy_drive, race_cpu

        if (compiler := session.config.stash.get(COMPILER, None)) is not None:
            import_modules()  # meanwhile
            compiler.wait()  # what does not compile is reported by the tests
        # No threads may exist when processes are forked.
        may_start_threads = not session.config.pluginmanager.has_plugin("workers")
        batch_cpu.warm_up(may_start_threads)
        race_cpu.warm_up()
        policy_drive.warm_up()
    except Exception as error:  # reported by the tests that need the simulator; others can still run
        session.config.stash[COMPILE_ERROR] = error


@pytest.fixture(scope="session")
def compiled(pytestconfig: pytest.Config) -> None:
    """The compiled simulator; `pytest_collection_finish` compiled it."""
    error = pytestconfig.stash.get(COMPILE_ERROR, None)
    if error is not None:
        raise RuntimeError("the simulator did not compile") from error


@pytest.fixture(scope="session")
def followed(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> "tuple[Plan, Plan]":
    """The flying and the standing lap of track-01 for the optimal driver: the only solver run of the fast tests."""
    from hotlap.drivers.optimal_follower import solve_followed
    from hotlap.tracks.registry import load_track

    return made_once(tmp_path_factory, "followed", lambda: solve_followed(load_track("track-01").nodes))


@pytest.fixture(scope="session")
def bridge_server(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgeProcess]:
    """A bridge in its own process, ready for clients; BRIDGE_PORT holds its port."""
    with BridgeProcess(tmp_path_factory.mktemp("bridge") / "log") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIDGE_PORT", str(server.port))
        yield server


@pytest.fixture(scope="session")
def entered_board(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a board with the drivers that ship, for servers that would enter them again."""
    return made_once(tmp_path_factory, "board", lambda: enter_drivers(tmp_path_factory.mktemp("board")))


@pytest.fixture(scope="session")
def play_server(entered_board: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayProcess]:
    """The page's server in its own process, with nothing but that board in its home, and no results."""
    with PlayProcess(tmp_path_factory.mktemp("play"), board=entered_board) as server:
        yield server
