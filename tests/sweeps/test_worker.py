"""A worker: ready, then a report for each task, and its end with its input."""

import subprocess
import sys

import msgspec

from forked_python import Popen
from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.worker import READY, STOP


def test_it_answers_each_task_and_ends_when_its_input_does(tmp_path):
    task = RunTask(0, 1, str(tmp_path / "run"), {"algo": "dqn"}, (("final_reward_mean", "maximize"),))
    command = [sys.executable, "-m", "hotlap.sweeps.worker"]
    with Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline().strip() == READY
        for line in (msgspec.json.encode(task), STOP, msgspec.json.encode(task)):
            process.stdin.write(line + b"\n")
            process.stdin.flush()
        for _ in range(2):
            report = msgspec.json.decode(process.stdout.readline(), type=RunReport)
            assert report.kind == "failed"
            assert "algo" in report.error
        process.stdin.close()
        assert process.wait(30) == 0
