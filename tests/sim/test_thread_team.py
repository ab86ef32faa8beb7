"""Threads kept between calls: every part is done once, errors and interrupts arrive, forks and exits are survived."""

import _thread
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import hotlap
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.thread_team import ThreadTeam


@pytest.fixture
def team():
    return ThreadTeam()


def test_every_part_is_done_once_and_at_the_same_time_as_the_others(team):
    meeting, found = threading.Barrier(3, timeout=20.0), []

    def work(part):
        meeting.wait()  # all three must be under way at once
        found.append((part, threading.current_thread()))

    for _ in range(5):
        found.clear()
        team.run(work, 3)
        assert sorted(part for part, _ in found) == [0, 1, 2]
        assert dict(found)[0] is threading.current_thread()
    assert team.num_threads == 2  # those of the first call


def test_threads_are_started_only_when_they_are_needed(team):
    before = threading.active_count()
    team.run(lambda part: None, 1)
    assert (team.num_threads, threading.active_count()) == (0, before)
    team.run(lambda part: None, 2)
    team.run(lambda part: None, 4)
    team.run(lambda part: None, 3)
    assert team.num_threads == 3


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_after_all_parts_have_ended_and_the_team_works_on(team, failing):
    ended = []

    def work(part):
        if part == failing:
            raise ValueError(f"part {part}")
        time.sleep(0.02)
        ended.append(part)

    with pytest.raises(ValueError, match=f"part {failing}"):
        team.run(work, 3)
    assert sorted(ended) == [part for part in range(3) if part != failing]
    ended.clear()
    team.run(ended.append, 3)
    assert sorted(ended) == [0, 1, 2]


def test_an_interrupt_is_raised_only_after_the_other_parts_have_ended(team):
    ended = []

    def work(part):
        if part == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(KeyboardInterrupt):
        team.run(work, 3)
    assert sorted(ended) == [1, 2]


def test_an_interrupt_while_waiting_is_raised_only_after_the_other_parts_have_ended(team):
    before, ended = signal.signal(signal.SIGINT, signal.default_int_handler), []

    def work(part):
        if part == 1:
            time.sleep(0.02)  # the caller waits by now
            _thread.interrupt_main()
            time.sleep(0.05)
            ended.append(part)

    try:
        with pytest.raises(KeyboardInterrupt):
            team.run(work, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [1]


def test_several_threads_may_use_it_at_once(team):
    total, lock = [], threading.Lock()

    def add(part):
        with lock:
            total.append(part)

    callers = [threading.Thread(target=lambda: [team.run(add, 3) for _ in range(50)]) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30.0)
    assert sorted(total) == sorted([0, 1, 2] * 200)


def test_where_no_thread_can_be_started_the_caller_does_everything(team, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    found = []
    team.run(found.append, 3)
    assert found == [0, 1, 2]


# --- races ---


def drive(env, num_steps=3):
    for _ in range(num_steps):
        obs = env.step(np.full((env.num_envs, 3), 0.5, np.float32))[0]
    return obs


def make_races():
    env = hotlap.RaceVectorEnv(8, 4, num_threads=2)
    env.reset(seed=1)
    return env


def test_races_whose_threads_run_can_be_copied_and_pickled(compiled):
    env = make_races()
    drive(env)
    copied = copy.deepcopy(env)
    assert pickle.loads(pickle.dumps(CpuRaceEngine(2))).num_threads == 2
    sent = pickle.loads(pickle.dumps(env.fleet._engine))
    assert sent.num_threads == 2
    expected = drive(env)
    np.testing.assert_array_equal(drive(copied), expected)


SETUP = """
import atexit, os, sys, threading, warnings
import numpy as np
import hotlap
from hotlap.sim import race_cpu

warnings.simplefilter("ignore")  # Python 3.12 warns of every fork of a process with threads
def make():
    env = hotlap.RaceVectorEnv(8, 4, num_threads=2)
    env.reset(seed=1)
    return env
def drive(env):
    for _ in range(3):
        obs = env.step(np.full((32, 3), 0.5, np.float32))[0]
    return obs
first = make()
expected = drive(first)
assert race_cpu._TEAM.num_threads == 1
"""

FORK = """
child = os.fork()
if child == 0:
    assert (threading.active_count(), race_cpu._TEAM.num_threads) == (1, 0)
    same = np.array_equal(drive(make()), expected)
    drive(first)  # races that the parent made
    assert race_cpu._TEAM.num_threads == 1  # its own
    os._exit(0 if same else 4)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
drive(first)
assert race_cpu._TEAM.num_threads == 1
sys.exit(code)
"""

EXIT = """
atexit.register(lambda: print(np.array_equal(drive(make()), expected)))
class Late:
    def __del__(self):
        drive(first)  # while the interpreter is torn down
        os.write(1, b"late\\n")
late = Late()
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", SETUP + code], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_child_has_none_of_the_parents_threads_and_starts_its_own(compiled):
    run(FORK)


def test_races_are_stepped_while_the_interpreter_exits(compiled):
    assert run(EXIT).splitlines()[0] == "True"
