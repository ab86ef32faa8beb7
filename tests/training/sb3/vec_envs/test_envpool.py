"""EnvPool as a VecEnv: compared with the bare pool, and LunarLander with Gymnasium's."""

import sys
import warnings
from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.errors import ActionError, ConfigError, TrainingError
from hotlap.training.sb3.vec_envs.envpool import EnvPoolVecEnv, _import_envpool

if find_spec("envpool") is None:  # found without an import, which takes seconds in every process that runs tests
    pytest.skip("EnvPool is not installed", allow_module_level=True)

SEED = 3
# One pole always pushed to the right, seeded SEED, falls in this many steps.
FALL_STEPS = 8

pytestmark = [
    pytest.mark.timeout(60),  # EnvPool imports a thousand environments
    pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning"),
]


def make(
    env_id: str = "CartPole-v1", num_envs: int = 3, seed: int = SEED, threads: int = 1, **env_args
) -> EnvPoolVecEnv:
    return EnvPoolVecEnv(env_id, num_envs, seed, threads, env_args)


def actions_for(venv: EnvPoolVecEnv, num_steps: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    if isinstance(venv.action_space, gym.spaces.Discrete):
        return rng.integers(0, venv.action_space.n, (num_steps, venv.num_envs))
    return rng.uniform(-1, 1, (num_steps, venv.num_envs, *venv.action_space.shape)).astype(np.float32)


def play(venv: EnvPoolVecEnv, actions: np.ndarray) -> list:
    """The first observations and all results; wall-clock times removed, arrays as bytes."""
    results = [venv.reset().tobytes()]
    for action in actions:
        obs, rewards, dones, infos = venv.step(action)
        for info in infos:
            info.get("episode", {}).pop("t", None)
            if "terminal_observation" in info:
                info["terminal_observation"] = info["terminal_observation"].tobytes()
        results.append((obs.tobytes(), rewards.tobytes(), dones.tolist(), infos))
    return results


# --- against the bare pool ---


@pytest.mark.parametrize(
    ("env_id", "limit", "num_steps"),
    [
        ("CartPole-v1", 12, 300),
        ("LunarLander-v3", 80, 500),
        ("LunarLanderContinuous-v3", 80, 300),
        ("Pendulum-v1", 50, 160),
    ],
)
def test_results_are_those_of_the_bare_pool_without_its_idle_steps(env_id, limit, num_steps):
    venv = make(env_id, max_episode_steps=limit)
    actions = actions_for(venv, num_steps)
    first = venv.reset()
    results = [venv.step(action) for action in actions]
    num_ends = 0
    for i in range(venv.num_envs):
        # Never truncated by itself: the oracle counts.
        bare = _import_envpool().make_gymnasium(
            env_id, num_envs=1, seed=SEED + i, num_threads=1, max_episode_steps=10**6
        )
        begin, _ = bare.reset()
        assert first[i].tobytes() == begin[0].tobytes()
        rewards: list[float] = []
        for action, (obs, reward, dones, infos) in zip(actions, results, strict=True):
            now, got, terminated, truncated, _ = bare.step(action[i : i + 1])
            assert not truncated[0]
            rewards.append(float(got[0]))
            assert reward[i] == got[0]
            is_cut = len(rewards) == limit and not terminated[0]
            assert dones[i] == (terminated[0] or is_cut)
            if not dones[i]:
                assert infos[i] == {}
                assert obs[i].tobytes() == now[0].tobytes()
                continue
            num_ends += 1
            assert sorted(infos[i]) == ["TimeLimit.truncated", "episode", "terminal_observation"]
            assert infos[i]["TimeLimit.truncated"] is bool(is_cut)
            assert infos[i]["terminal_observation"].tobytes() == now[0].tobytes()
            assert infos[i]["episode"]["r"] == round(sum(rewards), 6)
            assert infos[i]["episode"]["l"] == len(rewards)
            begin, _ = bare.reset()
            assert obs[i].tobytes() == begin[0].tobytes()
            rewards = []
    assert num_ends >= 6


def test_a_bare_pool_has_an_idle_step_after_an_episode_and_ours_does_not():
    # If this fails, EnvPool has changed and the adapter must be reviewed.
    bare = _import_envpool().make_gymnasium("CartPole-v1", num_envs=1, seed=SEED, num_threads=1)
    bare.reset()
    ends = [bool((result[2] | result[3])[0]) for result in (bare.step(np.array([1])) for _ in range(FALL_STEPS + 1))]
    assert ends == [False] * (FALL_STEPS - 1) + [True, False]
    assert bare.step(np.array([1]))[4]["elapsed_step"][0] == 1

    venv = make(num_envs=1)
    venv.reset()
    lengths = []
    for _ in range(40):
        _, rewards, _, infos = venv.step(np.array([1]))
        assert rewards[0] == 1.0  # an idle step would earn nothing
        lengths += [info["episode"]["l"] for info in infos if info]
    assert sum(lengths) <= 40 < sum(lengths) + 12


@pytest.mark.parametrize(("limit", "is_cut"), [(FALL_STEPS - 1, True), (FALL_STEPS, False), (FALL_STEPS + 1, False)])
def test_terminating_on_the_last_allowed_step_is_not_a_truncation(limit, is_cut):
    venv = make(num_envs=1, max_episode_steps=limit)
    venv.reset()
    steps = [venv.step(np.array([1])) for _ in range(min(limit, FALL_STEPS))]
    assert [bool(dones[0]) for _, _, dones, _ in steps] == [False] * (len(steps) - 1) + [True]
    [info] = steps[-1][3]
    assert info["TimeLimit.truncated"] is is_cut
    assert info["episode"]["l"] == len(steps)


def test_the_limit_is_the_one_gymnasium_has():
    assert make("LunarLander-v3").max_episode_steps == gym.spec("LunarLander-v3").max_episode_steps == 1000
    assert make("CartPole-v1").max_episode_steps == gym.spec("CartPole-v1").max_episode_steps == 500


# --- seeds ---


@pytest.mark.parametrize("threads", [1, 2])
def test_results_do_not_depend_on_the_threads(threads):
    one, other = make("LunarLander-v3", 5), make("LunarLander-v3", 5, threads=threads)
    actions = actions_for(one, 250)
    assert play(one, actions) == play(other, actions)


def test_seeding_again_repeats_the_results():
    venv = make("LunarLander-v3")
    actions = actions_for(venv, 120)
    results = play(venv, actions)
    assert play(venv, actions) != results
    venv.seed(SEED)
    assert play(venv, actions) == results
    venv.seed(SEED + 1)
    assert play(venv, actions) != results


def test_environment_i_is_seeded_seed_plus_i():
    obs = make("LunarLander-v3", 3).reset()
    np.testing.assert_array_equal(obs[1:], make("LunarLander-v3", 2, SEED + 1).reset())
    assert not np.array_equal(obs[0], obs[1])


@pytest.mark.parametrize("seed", [0, 2**31 - 2, 2**32 - 1])
def test_large_seeds_are_accepted(seed):
    one, other = make("LunarLander-v3", 3, seed), make("LunarLander-v3", 3, seed)
    np.testing.assert_array_equal(one.reset(), other.reset())


def test_without_a_seed_two_differ():
    venv = make("LunarLander-v3")
    assert venv.seed() != venv.seed()
    venv.seed()
    first = venv.reset()
    venv.seed()
    assert not np.array_equal(first, venv.reset())


# --- use by stable-baselines3 ---


def test_observations_are_in_their_space():
    venv = make("LunarLander-v3")
    assert venv.observation_space.low.tolist() == [-np.inf] * 8
    venv.reset()
    for action in actions_for(venv, 100):
        obs, rewards, dones, _ = venv.step(action)
        assert all(venv.observation_space.contains(row) for row in obs)
        assert (rewards.dtype, dones.dtype) == (np.float32, bool)


def test_ppo_learns_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        venv = make(num_envs=4)
        venv.reset()
    model = PPO("MlpPolicy", VecNormalize(venv), n_steps=32, batch_size=64, n_epochs=1, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluation_env = VecNormalize(make(num_envs=2, seed=9), training=False)
        evaluation = EvalCallback(evaluation_env, n_eval_episodes=2, eval_freq=64, verbose=0)
        model.learn(256, evaluation)
    assert model.num_timesteps == 256
    assert len(model.ep_info_buffer) > 5
    assert evaluation.best_mean_reward >= 2.0


def test_attributes_cannot_be_set_and_methods_cannot_be_called():
    venv = make(num_envs=2)
    assert venv.get_attr("env_id") == ["CartPole-v1"] * 2
    assert not venv.has_attr("gravity")
    with pytest.raises(ConfigError, match=r"no attributes to set.*'gravity'"):
        venv.set_attr("gravity", 1.0)
    with pytest.raises(ConfigError, match=r"no methods to call.*'jump'"):
        venv.env_method("jump")


def test_a_closed_environment_cannot_be_used():
    venv = make()
    venv.reset()
    venv.close()
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        venv.step(np.zeros(3, int))
    with pytest.raises(TrainingError, match="closed"):
        venv.reset()


# --- refusals ---


@pytest.mark.parametrize(
    ("env_id", "actions"),
    [
        ("CartPole-v1", np.zeros(2, int)),
        ("CartPole-v1", np.zeros((3, 1), int)),
        ("CartPole-v1", np.array([0, 1, 2])),
        ("CartPole-v1", np.array([0, 1, -1])),
        ("CartPole-v1", np.zeros(3)),
        ("Pendulum-v1", np.zeros(3, np.float32)),
        ("Pendulum-v1", np.zeros((4, 1), np.float32)),
        ("Pendulum-v1", np.array([[0], [np.nan], [0]], np.float32)),
        ("Pendulum-v1", np.array([[0], [0], [np.inf]], np.float32)),
    ],
)
def test_bad_actions_are_refused_and_nothing_moves(env_id, actions):
    venv, other = make(env_id), make(env_id)
    np.testing.assert_array_equal(venv.reset(), other.reset())
    with pytest.raises(ActionError, match="nothing moved"):
        venv.step(actions)
    action = actions_for(venv, 1)[0]
    np.testing.assert_array_equal(venv.step(action)[0], other.step(action)[0])


@pytest.mark.parametrize(
    ("env_id", "arguments", "words"),
    [
        ("LunarLandr-v3", {}, "not among EnvPool's.*Did you mean 'LunarLander-v3'"),
        ("hotlap/Racer-v0", {}, "'hotlap/Racer-v0' is not among EnvPool's"),
        ("LunarLander-v3", {"wheels": 3}, "EnvPool refuses.*wheels"),
        ("LunarLander-v3", {"max_episode_steps": "many"}, "EnvPool refuses"),
        ("LunarLander-v3", {"batch_size": 2}, "env_args: batch_size is set by"),
        ("LunarLander-v3", {"env_seed": [1, 2, 3]}, "env_args: env_seed is set by"),
        ("FrozenLake-v1", {}, "observations must be one player's Box, got Discrete"),
    ],
)
def test_environments_that_cannot_be_made_give_a_one_line_error(env_id, arguments, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make(env_id, **arguments)
    assert "\n" not in str(caught.value)


def test_reset_options_are_refused():
    venv = make()
    venv.set_options({"low": 0.0})
    with pytest.raises(ConfigError, match="no reset options"):
        venv.reset()


def test_without_envpool_the_error_names_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(TrainingError, match=r"pip install 'hotlap\[lunar\]'") as caught:
        _import_envpool()
    assert "\n" not in str(caught.value)
    with pytest.raises(TrainingError, match="not installed"):
        make()


# --- comparison with Gymnasium ---


def idle(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.zeros(len(obs), int)


def restless(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, len(obs))


def careful(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lands most of the time: tilts against the drift and brakes the fall."""
    x, height, drift, climb, angle, spin, *legs = obs.T
    tilt = np.clip(0.5 * x + drift, -0.4, 0.4) - angle - 2.0 * spin
    lift = 0.55 * np.abs(x) - height - climb
    on_ground = (legs[0] + legs[1]) > 0
    tilt, lift = np.where(on_ground, 0.0, tilt), np.where(on_ground, -climb, lift)
    sideways = np.where(tilt < -0.1, 3, np.where(tilt > 0.1, 1, 0))
    return np.where((lift > np.abs(tilt)) & (lift > 0.1), 2, sideways)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("pilot", [idle, restless, careful])
def test_lunar_lander_has_the_same_returns_as_gymnasiums(pilot):
    pytest.importorskip("Box2D")
    num_episodes = 300
    rng = np.random.default_rng(1)
    ours = []
    env = gym.make("LunarLander-v3")
    for episode in range(num_episodes):
        obs, _ = env.reset(seed=episode)
        total, length, ended = 0.0, 0, False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(int(pilot(obs[None], rng)[0]))
            total, length, ended = total + reward, length + 1, terminated or truncated
        ours.append((total, length))
    venv = make("LunarLander-v3", num_episodes, threads=2)
    obs = venv.reset()
    theirs: dict[int, tuple[float, int]] = {}
    while len(theirs) < num_episodes:
        obs, _, dones, infos = venv.step(pilot(obs, rng))
        for index in np.flatnonzero(dones):
            theirs.setdefault(index, (infos[index]["episode"]["r"], infos[index]["episode"]["l"]))
    one, other = np.array(ours), np.array(list(theirs.values()))
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / num_episodes)
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4.0 * error).all()
