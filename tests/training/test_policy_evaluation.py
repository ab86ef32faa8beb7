"""Evaluations are repeatable, agree with single environments, and rank by completion, clean laps and lap time."""

import random
from contextlib import suppress

import gymnasium as gym
import numpy as np
import pytest
import torch

from hotlap.envs.racer import RacerEnv
from hotlap.errors import ModelError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.returns import Returns
from hotlap.models.model_file import read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.training import policy_evaluation
from hotlap.training.learners import build_learner, policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import SELECTION_SEED, PolicyEvaluator, evaluate_model, score_laps
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import RACER, folder_at, tiny_config, train


class ConstantPolicy:
    """Always takes the same action."""

    def __init__(self, action):
        self.action = np.asarray(action, np.float32)

    def act(self, obs):
        return np.tile(self.action, (len(obs), 1))


def make_evaluator(**changes):
    config = tiny_config(**changes)
    return evaluator_of(config, build_learner(config))


def evaluator_of(config, learner):
    return PolicyEvaluator(config, make_card(config, policy_spaces(config, learner)))


def play(env, act, seed):
    """The return and length of one episode."""
    obs, _ = env.reset(seed=seed)
    total, length, has_ended = 0.0, 0, False
    while not has_ended:
        obs, reward, terminated, truncated, _ = env.step(act(obs))
        total, length, has_ended = total + float(reward), length + 1, terminated or truncated
    return total, length


def test_the_racers_returns_are_those_of_single_cars_with_the_runs_settings():
    racer = {"action_repeat": 2, "episode": {"max_ticks": 31, "start": "random"}}
    found = make_evaluator(racer=racer).evaluate_returns(ConstantPolicy([0.1, 0.8, 0.0]), 4)
    for number in range(4):
        env = RacerEnv(config={"episode": {"maxSteps": 31, "start": "random"}})
        total, ticks = play(env, lambda _: np.float32([0.1, 0.8, 0.0]), SELECTION_SEED + number)
        assert found.returns[number] == pytest.approx(total, abs=1e-6)
        assert found.lengths[number] == -(-ticks // 2)  # decisions, of two ticks each


def test_an_episode_that_does_not_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(policy_evaluation, "MAX_EPISODE_STEPS", 50)
    evaluator = make_evaluator(racer={"episode": {"max_ticks": 10_000}})
    assert evaluator.evaluate_returns(ConstantPolicy([0.0, 1.0, 0.0]), 2).lengths.tolist() == [50, 50]


def test_laps_are_evaluated_on_the_runs_track_from_the_same_starts_every_time():
    config = tiny_config(racer={"track": "track-02", "stack": 2})
    learner = build_learner(config)
    evaluator, policy = evaluator_of(config, learner), learner.policy()
    found = evaluator.evaluate_laps(policy, 3)
    assert found == evaluator.evaluate_laps(policy, 3)
    assert (found.track, found.episodes, found.start, found.seed) == ("track-02", 3, "random", SELECTION_SEED)


def laps(completion=1.0, clean=1.0, lap_s=40.0, reward=1.0, gap=None):
    return Evaluation(
        "x", "track-01", "random", 0, 10, 10, completion, clean, lap_s, lap_s, lap_s, 0.0, None, gap, 0.0, reward
    )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (laps(lap_s=90.0), laps(completion=0.94, lap_s=30.0)),  # six cars in a hundred
        (laps(completion=0.996, lap_s=30.0), laps(lap_s=30.5)),  # four in a thousand lengthen the lap by 1.2 %
        (laps(lap_s=30.3), laps(completion=0.996, lap_s=30.0)),
        (laps(clean=1.0, lap_s=90.0), laps(clean=0.8, lap_s=30.0)),
        (laps(lap_s=30.0, reward=0.0), laps(lap_s=30.1, reward=9.0)),
        (laps(clean=0.98, lap_s=30.0), laps(lap_s=30.7)),  # two unclean ones in a hundred lengthen the lap by 2 %
        (laps(lap_s=30.5), laps(clean=0.98, lap_s=30.0)),
        (laps(lap_s=99.0, reward=0.0), laps(lap_s=None, reward=9.0)),
        (laps(0.0, None, None, reward=0.2), laps(0.0, None, None, reward=0.1)),
    ],
)
def test_policies_are_ranked_by_completion_then_clean_laps_then_lap_time_then_reward(better, worse):
    assert score_laps(better).score > score_laps(worse).score


def test_figures_that_do_not_exist_are_not_logged():
    found = score_laps(laps(0.0, None, None, reward=0.25)).figures
    assert found == {"eval/mean_reward": 0.25, "eval/completion_rate": 0.0}
    more = score_laps(laps(0.5, 0.75, 30.0, 2.0, gap=0.1)).figures
    assert [more[name] for name in found] == [2.0, 0.5]
    others = {name.removeprefix("eval/"): value for name, value in more.items() if name not in found}
    assert others == {"clean_lap_rate": 0.75, "median_lap_time_sec": 30.0, "gap_to_optimal": 0.1}


def test_the_optimal_lap_is_known_where_the_track_has_one():
    assert 25.0 < make_evaluator().optimal_lap_s < 32.0
    assert make_evaluator(env="CartPole-v1").optimal_lap_s is None


def test_in_other_environments_the_score_is_the_mean_return_of_gymnasiums_episodes(monkeypatch):
    evaluator = make_evaluator(env="MountainCarContinuous-v0", evaluation={"episodes": 2})
    monkeypatch.setattr(PolicyEvaluator, "learned_policy", lambda self, policy: ConstantPolicy([0.5]))
    found = evaluator.score(None)
    env = gym.make("MountainCarContinuous-v0")
    returns = [play(env, lambda _: np.float32([0.5]), SELECTION_SEED + number)[0] for number in range(2)]
    assert found.score == (pytest.approx(np.mean(returns)),)
    assert found.figures == {"eval/mean_reward": found.score[0], "eval/mean_ep_length": 999.0}


@pytest.mark.parametrize("fails", [False, True])
def test_an_evaluation_leaves_the_global_generators_as_they_were(monkeypatch, fails):
    def draw():
        return random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002

    def drawing(self, policy, episodes, seed=0):
        draw()
        if fails:
            raise KeyError
        return Returns(np.zeros(1), np.ones(1, np.int64))

    evaluator = make_evaluator(env="Pendulum-v1")
    learner = build_learner(tiny_config(env="Pendulum-v1"))
    monkeypatch.setattr(PolicyEvaluator, "evaluate_returns", drawing)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    expected = draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    with suppress(KeyError):
        evaluator.score(learner.policy())
    assert draw() == expected


@pytest.mark.parametrize(("algo", "is_normalized"), [("ppo", True), ("sac", True), ("a2c", True), ("ppo", False)])
def test_the_policy_of_a_learner_acts_as_stable_baselines3_would(algo, is_normalized):
    config = tiny_config(algo, RACER, 3, normalize={"obs": is_normalized, "reward": True})
    learner, library = build_learner(config), SB3Learner(config)
    arrays = learner.policy()
    raw = np.random.default_rng(0).random((8, 14), np.float32)
    env = library.model.env
    if is_normalized:
        env.obs_rms.mean, env.obs_rms.var = raw.mean(0) + 0.2, raw.var(0) + 0.1
        arrays.normalizer.update(obs_mean=env.obs_rms.mean, obs_var=env.obs_rms.var)
    policy = evaluator_of(config, learner).learned_policy(arrays)
    expected, _ = library.model.predict(env.normalize_obs(raw.copy()), deterministic=True)
    np.testing.assert_array_equal(policy.act(raw), expected)


@pytest.fixture(scope="module")
def swing_up(tmp_path_factory):
    """The folder of a short run in the pendulum environment."""
    config, path = tiny_config(env="Pendulum-v1", steps=40), tmp_path_factory.mktemp("pendulum")
    train(config, path)
    return folder_at(path, config)


def test_a_model_is_evaluated_in_its_own_environment_from_the_seed(swing_up):
    found = evaluate_model(swing_up.model, episodes=2, seed=5)
    env = gym.make("Pendulum-v1")
    policy = LearnedPolicy.from_file(read_model(swing_up.model), env.observation_space, env.action_space)
    totals = [play(env, lambda obs: policy.act(np.stack([obs, obs]))[0], 5 + number)[0] for number in range(2)]
    assert found["mean_reward"] == pytest.approx(np.mean(totals))
    assert found["std_reward"] == pytest.approx(np.std(totals))
    assert (found["environment"], found["episodes"], found["seed"]) == ("Pendulum-v1", 2, 5)
    assert found["mean_episode_length"] == 200.0


def test_an_environment_with_other_spaces_than_the_models_is_refused_and_closed(swing_up, monkeypatch):
    closed = []
    other = gym.make("CartPole-v1")
    monkeypatch.setattr(other, "close", lambda: closed.append(True))
    monkeypatch.setattr(policy_evaluation, "make_env", lambda name, arguments: other)
    with pytest.raises(ModelError, match="its observations are"):
        evaluate_model(swing_up.model, episodes=1, seed=0)
    assert closed == [True]
