"""Races with plain stable-baselines3: every car of every race is one of its environments, driven by one policy.

usage: python race_sb3.py [--steps 200000] [--races 16] [--cars 4] [--seed 1]
"""

import argparse
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

import hotlap

REPEAT = 4  # ticks that an action is held


class RaceVecEnv(VecEnv):
    """`hotlap.RaceVectorEnv` in the form that stable-baselines3 asks for."""

    def __init__(self, num_races: int, num_cars: int, **options: Any) -> None:
        self._env = hotlap.RaceVectorEnv(num_races, num_cars, **options)
        self._first_seed = 0
        self._actions = np.zeros((self._env.num_envs, 3), np.float32)
        super().__init__(self._env.num_envs, self._env.single_observation_space, self._env.single_action_space)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """The seed of the next reset."""
        self._first_seed = seed or 0
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        """Begin all races."""
        return self._env.reset(seed=self._first_seed)[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Hold the actions for REPEAT ticks; a race that ends begins again, and the rest is driven in the new one."""
        total, has_ended = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for _ in range(REPEAT):
            obs, rewards, terminated, truncated, info = self._env.step(self._actions)
            total += np.where(has_ended, 0.0, rewards)
            for car in np.flatnonzero((terminated | truncated) & ~has_ended):
                infos[car]["terminal_observation"] = info["final_obs"][car]
                infos[car]["TimeLimit.truncated"] = bool(truncated[car] and not terminated[car])
                infos[car]["position"] = int(info["final_info"]["position"][car])
            has_ended |= terminated | truncated
        return obs, total, has_ended, infos

    def close(self) -> None:
        """Close the races."""
        self._env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, the same for every car."""
        return [getattr(self._env, attr_name, None)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Cars have no attributes of their own."""
        raise NotImplementedError("the cars of a race have no attributes of their own")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Cars have no methods of their own."""
        raise NotImplementedError("the cars of a race have no methods of their own")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No car is wrapped."""
        return [False] * len(self._chosen(indices))

    def _chosen(self, indices: Any) -> range | list[int]:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else list(indices)


def main() -> None:
    """Train, and say how far the cars get."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--races", type=int, default=16)
    parser.add_argument("--cars", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    races = RaceVecEnv(options.races, options.cars, start="rolling", laps=1)
    races.seed(options.seed)
    env = VecNormalize(VecMonitor(races))
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=512, n_epochs=4, gamma=0.987, seed=options.seed, device="cpu")
    model.learn(options.steps)
    env.training = False
    obs = env.reset()
    fleet = races.get_attr("fleet")[0]
    start_m = fleet.progress_m
    for _ in range(75):  # five seconds
        obs, _, _, _ = env.step(model.predict(obs, deterministic=True)[0])
    driven_m = fleet.progress_m - start_m
    print(f"{options.steps:,} steps; in five seconds a car drives {np.median(driven_m):.0f} m")


if __name__ == "__main__":
    main()
