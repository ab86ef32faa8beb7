"""Names of infos, environments of one car, scripted drives, and states compared; for the tests of `RacerEnv`."""

import gymnasium as gym
import numpy as np

import hotlap
from hotlap.tracks.golden_traces import scripted_actions

# Written out here instead of imported: others rely on these names and their order.
REWARD_KEYS = ["progress", "speed", "wall", "offTrack", "backward", "stillness"]
STEP_KEYS = [
    *REWARD_KEYS, "lap", "checkpoint", "stepCount", "tick", "rawSpeed", "wallContact", "stillnessCounter"
]  # fmt: skip
RESET_KEYS = ["lap", "checkpoint", "stepCount", "tick", "speed"]
LAP_KEYS = ["lapTime", "lapClean"]

ALL_TERMS = {
    "progress": 10.0, "speedBonus": 0.5, "wallPenalty": -0.2, "offTrackPenalty": -0.1, "backwardPenalty": -0.3,
    "stillnessPenalty": -0.05,
}  # fmt: skip
GAS, COAST, BRAKE = [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]


def make(**config) -> hotlap.RacerEnv:
    env = hotlap.RacerEnv(config=config or None)
    env.reset(seed=0)
    return env


def assert_same_state(a: dict, b: dict) -> None:
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def rollout(env: gym.Env, num_ticks: int) -> list:
    """All results of a scripted drive, with a reset after each episode."""
    obs, info = env.reset(seed=5, options={"start": "random"})
    seen = [(obs, info)]
    for tick in range(num_ticks):
        result = env.step(scripted_actions(obs[None], tick)[0])
        obs = result[0]
        seen.append(result)
        if result[2] or result[3]:
            obs, info = env.reset()
            seen.append((obs, info))
    return seen
