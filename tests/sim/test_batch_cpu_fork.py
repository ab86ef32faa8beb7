"""After a fork the parent's threads are gone: a child steps its cars in the calling thread."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

# A child that would use the parent's threads is aborted by OpenMP or waits forever, so all of it runs in a subprocess.
FORK = """
import os, sys, threading, warnings
import numpy as np
import hotlap
from hotlap.sim import batch_cpu

warnings.simplefilter("ignore")  # Python 3.12 warns of every fork of a process with threads
def drive(num_threads):
    cars = hotlap.RacerVectorEnv(256, num_threads=num_threads)
    cars.reset(seed=0)
    for _ in range(5):
        obs = cars.step(np.full((256, 3), 0.5, np.float32))[0]
    return cars, obs

parent, expected = drive(2) if sys.argv[1] != "fresh" else (None, drive(1)[1])
if sys.argv[1] == "locked":
    batch_cpu._POOL.lock.acquire()  # as another thread of the parent would
child = os.fork()
if child == 0:
    cars, obs = drive(2)
    same = np.array_equal(obs, expected)
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if np.array_equal(drive(2)[1], expected) else 5)
    same = same and os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) == 0
    if parent is not None:
        parent.step(np.zeros((256, 3), np.float32))  # an environment that the parent made
    os._exit(0 if same else 4)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if sys.argv[1] == "locked":
    batch_cpu._POOL.lock.release()
drive(2)  # the parent still has its threads
assert batch_cpu._POOL.is_usable
sys.exit(code)
"""

SUBPROCESSES = """
import warnings
import numpy as np
import hotlap
from stable_baselines3.common.vec_env import SubprocVecEnv
import gymnasium as gym

warnings.simplefilter("ignore")

class Batch(gym.Env):
    '''One environment that drives 256 cars.'''

    def __init__(self):
        self.cars = hotlap.RacerVectorEnv(256, num_threads=2)
        self.action_space, self.observation_space = self.cars.action_space, self.cars.observation_space

    def reset(self, seed=None, options=None):
        return self.cars.reset(seed=0)[0], {}

    def step(self, action):
        return self.cars.step(action)[0], 0.0, False, False, {}

def main():
    own = Batch()
    first, _ = own.reset()
    action = np.full((256, 3), 0.5, np.float32)
    expected = own.step(action)[0]
    envs = SubprocVecEnv([Batch, Batch], start_method="fork")
    assert np.array_equal(envs.reset(), np.stack([first, first]))
    for _ in range(3):
        obs = envs.step(np.stack([action, action]))[0]
        assert np.array_equal(obs[0], expected) and np.array_equal(obs[1], expected)
        expected = own.step(action)[0]
    envs.close()

if __name__ == "__main__":
    main()
"""


def run(code: str, *arguments: str) -> None:
    environ = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=50, env=environ
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("before", ["used", "locked", "fresh"])
def test_a_forked_child_drives_many_cars_whatever_the_parent_did_before(compiled, before):
    run(FORK, before)


def test_stable_baselines3_subprocesses_started_by_fork_drive_many_cars(compiled):
    run(SUBPROCESSES)
