"""The function that a Ray worker executes for one task. Loading this module loads neither torch nor numba."""

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hotlap.sweeps.run_messages import RunReport, RunTask

if TYPE_CHECKING:
    from hotlap.training.trainer import Trainer

STOP_POLL_S = 1.0


def execute_remotely(
    content: bytes,
    marker_file: str,
    marker: str,
    fetch_packed: Callable[[], bytes | None],
    is_stop_requested: Callable[[], bool],
) -> tuple[bytes, bytes | None]:
    """Do a task given as JSON; returns the report as JSON and, where no folder is shared, the run's packed folder.

    `marker_file` lies in the sweep's folder: a machine that finds the marker in it shares the folder. Otherwise the run
    trains in a temporary folder, from what `fetch_packed` returns where an earlier process got that far.
    """
    task = msgspec.json.decode(content, type=RunTask)
    # Read by numba when it is first imported: the cluster gave this task so many cores.
    os.environ.setdefault("NUMBA_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    from hotlap.sweeps.run_task import execute

    done = threading.Event()

    def watch(trainer: "Trainer") -> None:
        def poll() -> None:
            while not done.wait(STOP_POLL_S):
                if is_stop_requested():
                    trainer.stop()

        threading.Thread(target=poll, name="stop requests", daemon=True).start()

    try:
        if is_shared(marker_file, marker):
            return msgspec.json.encode(execute(task, watch)), None
        from hotlap.sweeps.run_archive import pack_run, unpack_run

        with tempfile.TemporaryDirectory(prefix="hotlap-run-") as folder:
            path = Path(folder) / Path(task.folder).name
            if (packed := fetch_packed()) is not None:
                unpack_run(packed, path)
            report: RunReport = execute(msgspec.structs.replace(task, folder=str(path)), watch)
            return msgspec.json.encode(report), pack_run(path)
    finally:
        done.set()


def is_shared(marker_file: str, marker: str) -> bool:
    """Whether this machine sees the sweep's folder."""
    try:
        return Path(marker_file).read_text(encoding="utf-8") == marker
    except OSError:
        return False
