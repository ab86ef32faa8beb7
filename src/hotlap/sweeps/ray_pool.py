"""The Ray pool: one Ray task per run. Ray only finds a machine for it; the sweep's journal stays the record.

Ray sends its messages as pickles: whoever may connect to a cluster can run code on it, so use Ray's token
authentication and connect only machines that trust one another.
"""

import logging
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from hotlap.atomic_files import write_atomically
from hotlap.errors import ConfigError, HotlapError, TrainingError, one_line
from hotlap.sweeps.ray_task import execute_remotely
from hotlap.sweeps.run_messages import Ended, RunReport, RunTask
from hotlap.sweeps.sweep_folder import SweepFolder

MARKER_NAME = ".cluster-marker"
CONNECT_TIMEOUT_S = 5.0
CONNECT_HINT = "Start a cluster with `ray start --head`, or check the address."
_log = logging.getLogger(__name__)


def import_ray() -> Any:
    """Ray; a ConfigError says how to install it."""
    try:
        import ray
    except ImportError:
        raise ConfigError("--ray needs the package ray. Install it: pip install 'hotlap[sweeps]'") from None
    return ray


class _StopFlag:
    """An actor that tells the tasks of all machines whether the sweep wants to stop."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


class RayPool:
    """Runs tasks on a Ray cluster, as many at a time as it has room for, or at most `max_tasks`.

    `is_carried` makes every machine train in a folder of its own, as if none shared the sweep's.
    """

    def __init__(
        self, address: str, folder: SweepFolder, max_tasks: int | None = None, *, is_carried: bool = False
    ) -> None:
        self._ray = import_ray()
        self._folder, self._max_tasks = folder, max_tasks
        self._driver_folder = TemporaryDirectory(prefix="hotlap-")
        self._connect(address)
        self._marker_file = (folder.path / MARKER_NAME).resolve()
        self._marker = uuid.uuid4().hex
        write_atomically(self._marker_file, (b"" if is_carried else self._marker.encode()))
        self._flag = self._place_flag()
        self._tasks: dict[Any, RunTask] = {}
        self._remote = self._ray.remote(max_retries=0, max_calls=0)(_execute_with_flag)
        self._num_cpus = 1

    def _connect(self, address: str) -> None:
        refuse_unreachable(address)
        options = {"logging_level": logging.ERROR, "log_to_driver": False, "ignore_reinit_error": False}
        try:
            # Ray puts the folder in which it is initialised first on the path of every worker of the cluster. It gets
            # one that stays empty: the current folder may have a file named like a library.
            with _inside(self._driver_folder.name):
                self._ray.init(address=address, **options)
        # Ray raises errors of many kinds where it cannot connect.
        except Exception as error:
            self._driver_folder.cleanup()
            raise TrainingError(f"--ray {address:.80}: cannot connect ({one_line(error)}). {CONNECT_HINT}") from None

    def _place_flag(self) -> Any:
        """The flag, on this machine: where it is lost, so is the sweep."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=True)
        return self._ray.remote(num_cpus=0, scheduling_strategy=here)(_StopFlag).remote()

    @property
    def num_slots(self) -> int:
        """Tasks that the cluster has room for now."""
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        room = max(1, cpus // self._num_cpus)
        return room if self._max_tasks is None else min(room, self._max_tasks)

    @property
    def num_running(self) -> int:
        """Tasks that were started and have not ended."""
        return len(self._tasks)

    def start(self, task: RunTask) -> None:
        """Hand a task to the cluster, with the resources that its configuration asks for."""
        from hotlap.sweeps.run_archive import pack_run

        path = Path(task.folder).resolve()
        task = msgspec.structs.replace(task, folder=str(path))
        self._num_cpus = int(task.config.get("torch_threads", 1))
        num_gpus = 1 if task.config.get("device") == "cuda" else 0
        # In a list, Ray leaves the reference alone: only a machine that does not share the folder fetches the content.
        packed = [self._ray.put(pack_run(path))] if path.is_dir() else []
        remote = self._remote.options(num_cpus=self._num_cpus, num_gpus=num_gpus, name=path.name)
        reference = remote.remote(msgspec.json.encode(task), str(self._marker_file), self._marker, packed, self._flag)
        self._tasks[reference] = task

    def wait(self, timeout_s: float) -> list[Ended]:
        """The tasks that have ended, waiting for one up to `timeout_s`."""
        try:
            done, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=timeout_s)
        except self._ray.exceptions.RayError as error:
            raise TrainingError(
                f"the Ray cluster does not answer ({one_line(error)}). Resume the sweep later."
            ) from None
        return [(self._tasks[reference], self._collect(reference, self._tasks.pop(reference))) for reference in done]

    def _collect(self, reference: Any, task: RunTask) -> RunReport:
        from hotlap.sweeps.run_archive import unpack_run

        errors = self._ray.exceptions
        try:
            content, packed = self._ray.get(reference)
            if packed is not None:
                unpack_run(packed, Path(task.folder))
            return msgspec.json.decode(content, type=RunReport)
        except errors.RayTaskError as error:  # raised by our function, e.g. where hotlap is not installed
            return RunReport("failed", error=f"on a machine of the cluster: {one_line(error)}")
        except errors.RayError as error:
            return RunReport("lost", error=f"its machine or process was lost ({type(error).__name__})")
        except HotlapError as error:
            return RunReport("failed", error=str(error))

    def stop(self) -> None:
        """Ask every run to save and end."""
        self._flag.set.remote()

    def close(self) -> None:
        """Leave the cluster, which ends this sweep's tasks."""
        with suppress(OSError):
            self._marker_file.unlink()
        self._ray.shutdown()
        self._driver_folder.cleanup()


@contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Make a folder the current one for the length of a block."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _execute_with_flag(
    content: bytes, marker_file: str, marker: str, packed: list[Any], flag: Any
) -> tuple[bytes, bytes | None]:
    import ray

    def is_stop_requested() -> bool:
        try:
            return bool(ray.get(flag.is_set.remote(), timeout=10.0))
        except ray.exceptions.RayError:
            return False

    def fetch_packed() -> bytes | None:
        return bytes(ray.get(packed[0])) if packed else None

    return execute_remotely(content, marker_file, marker, fetch_packed, is_stop_requested)


def refuse_unreachable(address: str) -> None:
    """Fail at once where nobody listens; Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        if not host or not port.isdecimal():
            raise OSError("it must be auto or HOST:PORT")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S):
            return
    except (OSError, OverflowError) as error:
        raise TrainingError(f"--ray {address:.80}: cannot connect ({one_line(error)}). {CONNECT_HINT}") from None
