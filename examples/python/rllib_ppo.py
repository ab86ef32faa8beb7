"""PPO of RLlib on the racer: `hotlap/Racer-v0` as an ordinary Gymnasium environment.

Needs `pip install "ray[rllib]"`, in an environment of its own: RLlib pins an older Gymnasium. For speed use
`hotlap.TensorRacer`, as tensor_ppo.py does: RLlib steps one car at a time.

usage: python rllib_ppo.py [--iterations 50] [--cars 8] [--track track-01] [--seed 1]
"""

import argparse
import logging
import os
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report its use

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import hotlap  # noqa: F401 (registers the environment)

REPEAT = 4  # ticks that an action is held
RULES = {
    "weights": {"penaltyMinSpeed": 8.0},
    "episode": {"start": "random", "maxSteps": 720, "stillnessTimeoutTicks": 60},
}


class HeldActions(gym.Wrapper[Any, Any, Any, Any]):
    """Holds an action for REPEAT ticks and scales rewards, so that a decision is worth about 1.

    The policy acts on two axes from -1 to 1, as RLlib's normalized actions are: steer, and throttle less brake.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def step(self, action: Any) -> Any:
        """REPEAT ticks, or until the episode is over."""
        steer, pedal = np.clip(action, -1.0, 1.0)
        command = np.array([steer, max(pedal, 0.0), max(-pedal, 0.0)], np.float32)
        total = 0.0
        for _ in range(REPEAT):
            obs, reward, terminated, truncated, info = self.env.step(command)
            total += 300.0 * float(reward)
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


def make_env(settings: dict[str, Any]) -> gym.Env[Any, Any]:
    """One car."""
    return HeldActions(gym.make("hotlap/Racer-v0", track_id=settings["track"], observation="road", config=RULES))


def main() -> None:
    """Train, and print how far the cars get."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--cars", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4096, help="decisions of an iteration")
    parser.add_argument("--track", default="track-01")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    register_env("racer", make_env)
    config = (
        PPOConfig()
        .environment("racer", env_config={"track": options.track})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=options.cars)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=options.steps,
            minibatch_size=min(512, options.steps),
            num_epochs=5,
            lr=5e-4,
            gamma=0.987,
            lambda_=0.95,
            entropy_coeff=0.0,
        )
        .rl_module(model_config={"fcnet_hiddens": [96, 96], "fcnet_activation": "tanh", "vf_share_layers": False})
        .debugging(seed=options.seed)
    )
    algorithm = config.build_algo()
    for number in range(1, options.iterations + 1):
        figures = algorithm.train()["env_runners"]
        mean = figures.get("episode_return_mean")
        print(f"iteration {number}: return {'not known yet' if mean is None else f'{mean:.1f}'}", flush=True)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
