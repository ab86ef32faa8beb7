"""`hotlap train` in which a rollout never ends, as on a GPU that waits for another process.

Of the two processes, the one whose rank is the last argument dies there; with `none` the rollout ends, and all is well.
"""

import os
import signal
import sys
import threading

from hotlap.cli.main import main
from hotlap.learning.distributed import process_watch, processes
from hotlap.training.algorithms.rollout_events import RolloutEvents
from hotlap.training.trainer import Trainer

process_watch.SILENT_S, process_watch.NOTICE_S = 8.0, 0.5

LAST_ROLLOUT = 20
dying_rank = sys.argv.pop()
num_rollouts = 0
gather = RolloutEvents.gather


def gather_or_wait(events: RolloutEvents, among: processes.Processes) -> None:
    global num_rollouts
    num_rollouts += 1
    if num_rollouts == LAST_ROLLOUT and dying_rank != "none":
        if among.rank == int(dying_rank):
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
    gather(events, among)


RolloutEvents.gather = gather_or_wait


def prepare(trainer: Trainer) -> None:
    trainer.processes.wait()
    trainer.processes.watch()


Trainer._prepare_processes = prepare

if __name__ == "__main__":
    main()
