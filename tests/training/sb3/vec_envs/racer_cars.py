"""Shared by the tests of `RacerVecEnv`: cars that meet all events of a race within two seconds."""

import numpy as np

from hotlap.training.sb3.vec_envs.racer import RacerVecEnv

F = np.float32
# All reward terms are used; cars that brake end by standing still, the others after two seconds.
CONFIG = {
    "weights": {"speedBonus": 0.01, "wallPenalty": -0.02, "backwardPenalty": -0.003},
    "episode": {"maxSteps": 120, "stillnessTimeoutTicks": 15, "start": "random"},
}


def racer(num_envs: int = 3, seed: int | None = 0, **options) -> RacerVecEnv:
    env = RacerVecEnv(num_envs, config=CONFIG, **options)
    if seed is not None:
        env.seed(seed)
        env.reset()
    return env


def actions_at(step: int, num_envs: int) -> np.ndarray:
    """Some cars race, some stop, some go for the wall."""
    actions = np.random.default_rng(step).uniform([-1, 0, 0], [1, 1, 0.2], (num_envs, 3)).astype(F)
    actions[::4], actions[1::4] = [0.0, 0.0, 1.0], [0.5, 0.7, 0.0]
    return actions


def drive(env: RacerVecEnv, start: int, stop: int) -> None:
    """Take the steps from `start` to before `stop`."""
    for step in range(start, stop):
        env.step(actions_at(step, env.num_envs))
