"""What a run says of itself, in its model files and in the document of its results."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.evaluation.returns import Returns
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.run_files.summary import Course, make_card, make_results
from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import LUNAR, tiny_config

COURSE = Course(
    began_s=0.0, ended_s=86_400.5, trained_s=3.5, step=102, num_episodes=7, weights_digest="w" * 64
)  # fmt: skip
RETURNS = Returns(np.array([1.0, 3.0]), np.array([10, 20]))
FILES = (Path("somewhere") / "ppo_seed42_model.zip", ["checkpoint_40.zip", "checkpoint_80.zip"])


def card_of(config):
    return make_card(config, TrainingEnvs(config).env, 12, "digest")


def test_a_racers_card_has_all_that_driving_takes():
    world = {"track": "track-02", "action_repeat": 3, "stack": 2, "lap_fourier": 1}
    card = card_of(tiny_config("a2c", seed=5, racer=world, normalize={"clip_obs": 7.0}))
    assert (card.algorithm, card.environment, card.seed, card.step) == ("a2c", "hotlap/Racer-v0", 5, 12)
    assert (card.physics, card.observation_layout, card.track) == (PHYSICS_VERSION, OBSERVATION_LAYOUT, "track-02")
    assert (card.action_repeat, card.stack, card.lap_fourier, card.clip_obs) == (3, 2, 1, 7.0)
    assert (card.policy.kind, card.policy.net_arch, card.weights_digest) == ("MlpPolicy", (8,), "digest")


def test_another_environments_card_has_its_arguments_and_no_physics():
    card = card_of(tiny_config("sac", LUNAR, normalize={"obs": False}))
    assert (card.environment, card.env_args, card.physics, card.clip_obs) == (LUNAR, {"continuous": True}, None, None)


def test_a_model_made_behind_a_bridge_is_good_for_cars_anywhere():
    local = tiny_config(racer={"track": "track-03", "config": {}})
    arguments = {"bridge_url": "ws://127.0.0.1:1", "track_id": "track-03"}
    remote = tiny_config(env="hotlap/RemoteRacer-v0", env_args=arguments)
    env = TrainingEnvs(local).env
    card = make_card(remote, env, 12, "digest")
    assert replace(card, config_digest="") == replace(make_card(local, env, 12, "digest"), config_digest="")


def test_results_are_put_in_their_places():
    config = tiny_config(num_envs=3, checkpoint={"interval": 40})
    found = make_results(config, TrainingEnvs(config).env, COURSE, FILES, RETURNS, None).to_dict()["experiment_results"]
    assert found["metadata"] == {
        "experiment_id": "ppo_seed42", "algorithm": "ppo", "environment": "hotlap/Racer-v0", "seed": 42,
        "start_time": "1970-01-01T00:00:00.000Z", "end_time": "1970-01-02T00:00:00.500Z", "total_timesteps": 102,
    }  # fmt: skip
    assert found["model"] == {
        "policy": "MlpPolicy", "model_file": "ppo_seed42_model.zip", "checkpoint_interval": 40,
        "checkpoints": ["checkpoint_40.zip", "checkpoint_80.zip"],
    }  # fmt: skip
    assert found["metrics"] == {
        "final_reward_mean": 2.0, "final_reward_std": 1.0, "episode_length_mean": 15.0, "total_episodes": 7,
        "training_time_seconds": 3.5, "converged": None,
    }  # fmt: skip
    assert found["hyperparameters"]["n_steps"] == 32
    assert (found["environment"]["track"], found["environment"]["num_envs"]) == ("track-01", 3)
    assert found["provenance"]["weights_digest"] == "w" * 64
    assert found["provenance"]["config_digest"] == config.digest()


def test_a_run_has_converged_at_the_environments_threshold_and_not_below():
    config = tiny_config(env="CartPole-v1")  # its threshold is 475
    env = TrainingEnvs(config).env
    for mean, is_converged in ((475.0, True), (474.9, False)):
        returns = Returns(np.array([mean]), np.array([1]))
        assert make_results(config, env, COURSE, FILES, returns, None).metrics.converged is is_converged
