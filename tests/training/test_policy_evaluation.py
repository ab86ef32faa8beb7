"""How good a policy is: the same episodes every time, played as single environments would, and who counts as better."""

import gymnasium as gym
import numpy as np
import pytest

from hotlap.envs.racer import RacerEnv
from hotlap.errors import ModelError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.models.model_file import read_model
from hotlap.models.policy import LearnedPolicy
from hotlap.training import policy_evaluation as judging
from hotlap.training.algorithms.learners import build_model
from hotlap.training.policy_evaluation import SELECTION_SEED, PolicyEvaluator, evaluate_model, live_policy
from hotlap.training.run_files.summary import make_card
from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import RACER, folder_at, tiny_config, train


class Steady:
    """A policy that always does the same and keeps what it was shown."""

    def __init__(self, action):
        self.action, self.shown = np.asarray(action, np.float32), []

    def act(self, obs):
        self.shown.append(obs.copy())
        return np.tile(self.action, (len(obs), 1))


def make_judge(**changes):
    config = tiny_config(**changes)
    return PolicyEvaluator(config, make_card(config, TrainingEnvs(config).env, 0, "")), config


# --- the racer ---


def test_the_racers_returns_are_those_of_single_cars_under_the_runs_own_rules():
    judge, config = make_judge(racer={"action_repeat": 2, "config": {"episode": {"maxSteps": 31, "start": "random"}}})
    found = judge.evaluate_returns(Steady([0.1, 0.8, 0.0]), 4)
    for number in range(4):
        env = RacerEnv(config=dict(config.racer.config))
        env.reset(seed=SELECTION_SEED + number)
        total, ticks, has_ended = np.float32(0.0), 0, False
        while not has_ended:
            _, reward, terminated, truncated, _ = env.step(np.float32([0.1, 0.8, 0.0]))
            total, ticks, has_ended = total + reward, ticks + 1, terminated or truncated
        assert found.returns[number] == pytest.approx(total, abs=1e-6)
        assert found.lengths[number] == -(-ticks // 2)  # decisions, of two ticks each


def test_an_episode_that_nothing_ends_is_left_after_a_while(monkeypatch):
    monkeypatch.setattr(judging, "LONGEST_EPISODE", 50)
    judge, _ = make_judge(racer={"config": {"episode": {"maxSteps": 10_000}}})
    assert judge.evaluate_returns(Steady([0.0, 1.0, 0.0]), 2).lengths.tolist() == [50, 50]


def test_laps_are_judged_on_the_runs_track_from_the_same_starts_every_time():
    judge, _ = make_judge(racer={"track": "track-02", "stack": 2})
    first, second = Steady([0.0, 0.3, 0.0]), Steady([0.0, 0.3, 0.0])
    assert judge.evaluate_laps(first, 3) == judge.evaluate_laps(second, 3)
    found = judge.evaluate_laps(first, 3)
    assert (found.track, found.episodes, found.start, found.seed) == ("track-02", 3, "random", SELECTION_SEED)
    assert first.shown[0].shape == (3, 28)
    np.testing.assert_array_equal(first.shown[0], second.shown[0])


def laps(completion=1.0, clean=1.0, lap_s=40.0, reward=1.0, gap=None):
    return Evaluation(
        "x", "track-01", "random", 0, 10, 10, completion, clean, lap_s, lap_s, lap_s, 0.0, None, gap, 0.0, reward
    )


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (laps(completion=1.0, lap_s=90.0), laps(completion=0.9, lap_s=30.0)),  # coming round beats being fast
        (laps(completion=1.0, lap_s=90.0), laps(completion=0.997, lap_s=30.0)),  # be it one car in three hundred
        (laps(clean=1.0, lap_s=90.0), laps(clean=0.8, lap_s=30.0)),
        (laps(lap_s=30.0, reward=0.0), laps(lap_s=30.1, reward=9.0)),
        (laps(clean=0.98, lap_s=30.0), laps(clean=1.0, lap_s=31.0)),  # a hair's breadth of cleanness does not count
        (laps(lap_s=99.0, reward=0.0), laps(lap_s=None, reward=9.0)),
        (laps(0.0, None, None, reward=0.2), laps(0.0, None, None, reward=0.1)),
    ],
)
def test_who_counts_as_better(better, worse):
    assert judging._judge_laps(better).score > judging._judge_laps(worse).score


def test_figures_that_do_not_exist_are_not_told():
    told = judging._judge_laps(laps(0.0, None, None, reward=0.25))
    assert told.figures == {"eval/mean_reward": 0.25, "eval/completion_rate": 0.0}
    told = judging._judge_laps(laps(0.5, 0.75, 30.0, 2.0, gap=0.1))
    assert told.figures == {
        "eval/mean_reward": 2.0, "eval/completion_rate": 0.5, "eval/clean_lap_rate": 0.75,
        "eval/median_lap_time_sec": 30.0, "eval/gap_to_optimal": 0.1,
    }  # fmt: skip


def test_the_optimal_lap_is_known_where_the_track_has_one():
    judge, _ = make_judge()
    assert 25.0 < judge.optimal_lap_s < 32.0
    assert make_judge(env="CartPole-v1")[0].optimal_lap_s is None


# --- other environments ---


def test_elsewhere_the_return_decides_and_episodes_are_gymnasiums():
    judge, _ = make_judge(env="MountainCarContinuous-v0")
    found = judge.judge(Steady([0.5]), 2)
    env = gym.make("MountainCarContinuous-v0")
    returns = []
    for number in range(2):
        env.reset(seed=SELECTION_SEED + number)
        total, has_ended = 0.0, False
        while not has_ended:
            _, reward, terminated, truncated, _ = env.step(np.float32([0.5]))
            total, has_ended = total + reward, terminated or truncated
        returns.append(total)
    assert found.score == (pytest.approx(np.mean(returns)),)
    assert found.figures == {"eval/mean_reward": found.mean_reward, "eval/mean_ep_length": 999.0}
    assert found.laps is None


# --- policies ---


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_the_live_policy_sees_what_the_learner_saw(algo):
    config = tiny_config(algo, RACER, 3)
    worlds = TrainingEnvs(config)
    model = build_model(config, worlds.env)
    raw = np.random.default_rng(0).random((8, 14), np.float32)
    worlds.env.obs_rms.mean, worlds.env.obs_rms.var = raw.mean(0) + 0.2, raw.var(0) + 0.1
    policy = live_policy(model, make_card(config, worlds.env, 0, ""))
    expected, _ = model.predict(worlds.env.normalize_obs(raw.copy()), deterministic=True)
    np.testing.assert_array_equal(policy.act(raw), expected)


def test_without_a_normalizer_the_live_policy_sees_plain_observations():
    config = tiny_config("ppo", RACER, normalize={"obs": False, "reward": True})
    worlds = TrainingEnvs(config)
    model = build_model(config, worlds.env)
    raw = np.random.default_rng(0).random((8, 14), np.float32)
    policy = live_policy(model, make_card(config, worlds.env, 0, ""))
    np.testing.assert_array_equal(policy.act(raw), model.predict(raw, deterministic=True)[0])


@pytest.fixture(scope="module")
def swing_up(tmp_path_factory):
    """The folder of a short run on the pendulum."""
    config, path = tiny_config(env="Pendulum-v1", steps=40), tmp_path_factory.mktemp("pendulum")
    train(config, path)
    return folder_at(path, config)


def test_a_models_own_environment_is_played_from_the_seed(swing_up):
    found = evaluate_model(swing_up.model, episodes=2, seed=5)
    env = gym.make("Pendulum-v1")
    policy = LearnedPolicy.from_file(read_model(swing_up.model), env.observation_space, env.action_space)
    totals = []
    for number in range(2):
        obs, _ = env.reset(seed=5 + number)
        totals.append(0.0)
        for _ in range(200):
            obs, reward, *_ = env.step(policy.act(np.stack([obs, obs]))[0])
            totals[-1] += float(reward)
    assert found["mean_reward"] == pytest.approx(np.mean(totals))
    assert found["std_reward"] == pytest.approx(np.std(totals))
    assert (found["environment"], found["episodes"], found["seed"]) == ("Pendulum-v1", 2, 5)
    assert found["mean_episode_length"] == 200.0


def test_an_environment_that_is_not_the_models_is_refused_and_closed(swing_up, monkeypatch):
    closed = []
    other = gym.make("CartPole-v1")
    monkeypatch.setattr(other, "close", lambda: closed.append(True))
    monkeypatch.setattr(judging, "make_env", lambda name, arguments: other)
    with pytest.raises(ModelError, match="its observations are"):
        evaluate_model(swing_up.model, episodes=1, seed=0)
    assert closed == [True]
