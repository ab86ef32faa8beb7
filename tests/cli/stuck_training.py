"""`hotlap train` in which a rollout never ends, as on a GPU that waits for another process.

Of the two processes, the one whose rank is the last argument dies there; with `none` the rollout ends, and all is well.
"""

import os
import signal
import sys
import threading

from hotlap.cli.main import main
from hotlap.learning.distributed import process_watch
from hotlap.learning.events import RolloutEvents
from hotlap.training.trainer import Trainer

process_watch.SILENT_S, process_watch.NOTICE_S = 8.0, 0.5

LAST_ROLLOUT = 20
dying_rank = sys.argv.pop()
num_rollouts = 0
read_events = RolloutEvents.__init__


def read_or_wait(self, rollout, among) -> None:
    global num_rollouts
    num_rollouts += 1
    if num_rollouts == LAST_ROLLOUT and dying_rank != "none":
        if among.rank == int(dying_rank):
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
    read_events(self, rollout, among)


RolloutEvents.__init__ = read_or_wait


prepare_trainer = Trainer._prepare


def prepare(trainer: Trainer) -> None:
    prepare_trainer(trainer)
    trainer.processes.wait()
    trainer.processes.watch()


Trainer._prepare = prepare

if __name__ == "__main__":
    main()
