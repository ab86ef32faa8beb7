"""Helpers that spell out what a step of several ticks means, and bring cars to the end of a lap."""

from typing import Any

import gymnasium as gym
import numpy as np

from hotlap.envs.infos import LAP_KEYS, REWARD_KEYS


class HoldAction(gym.Wrapper):
    """`repeat` steps of a RacerEnv as one step: what `action_repeat` must be equal to."""

    def __init__(self, env: gym.Env, repeat: int) -> None:
        super().__init__(env)
        self.repeat = repeat

    def step(self, action):
        total, lap, touched = None, {}, False
        for _ in range(self.repeat):
            obs, reward, terminated, truncated, info = self.env.step(action)
            gain = np.array([reward, *(info[key] for key in REWARD_KEYS)], np.float32)
            total = gain if total is None else total + gain
            touched |= info["wallContact"]
            lap |= {key: info[key] for key in LAP_KEYS if key in info}
            if terminated or truncated:
                break
        reward, *terms = total.tolist()
        sums = dict(zip(REWARD_KEYS, terms, strict=True))
        return obs, reward, terminated, truncated, {**info, **sums, **lap, "wallContact": touched}


def place_before_the_line(state: dict[str, Any], cars: list[int], nodes: Any, metres: float = 8.0) -> None:
    """Put cars shortly before the start line, fast, with only the line itself still to cross."""
    node = nodes.num_nodes - round(metres / nodes.step_m)
    for name, value in (
        ("x_m", nodes.x_m[node]),
        ("y_m", nodes.y_m[node]),
        ("yaw_rad", np.arctan2(nodes.tangent_y[node], nodes.tangent_x[node])),
        ("forward_mps", 40.0),
        ("node", node),
        ("share", 0.0),
        ("lateral_m", 0.0),
        ("arc_m", node * nodes.step_m),
        ("next_gate", 0),
        ("clock_runs", 1),
    ):
        state[name][cars] = value
