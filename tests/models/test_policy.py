"""A policy read from a model file acts as its learner did; one that does not fit is refused."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecTransposeImage

from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.spaces import action_space
from hotlap.errors import ConfigError, ModelError
from hotlap.hyperparameters import PPOSettings
from hotlap.models import policy
from hotlap.models.model_file import PolicySettings, read_model
from hotlap.models.policy import LearnedPolicy, network_observations, policy_arguments, policy_kind
from hotlap.models.space_data import space_data


def sample(space: spaces.Space[Any], num_rows: int) -> np.ndarray:
    space.seed(3)
    return np.stack([space.sample() for _ in range(num_rows)])


def spaces_of(env_id: str) -> tuple[Any, Any]:
    env = gym.make(env_id)
    env.close()
    return env.observation_space, env.action_space


def racer_spaces(card) -> tuple[spaces.Box, spaces.Box]:
    return stacked_observation_space(card.stack, card.lap_fourier), action_space()


def refusal(model, observations, actions) -> str:
    with pytest.raises(ModelError) as caught:
        LearnedPolicy.from_file(model, observations, actions)
    text = str(caught.value)
    assert text.startswith(f"{model.path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{model.path}: ")


# --- actions ---


def test_a_racer_policy_is_bit_identical_to_its_learner(any_racer):
    run, model = any_racer, read_model(any_racer.path)
    policy = LearnedPolicy.from_file(model, *racer_spaces(model.card))
    obs = sample(racer_spaces(model.card)[0], 64)
    expected, _ = run.model.predict(run.normalize(obs), deterministic=True)
    found = policy.act(obs)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found, axis=0)) > 1


def test_discrete_actions_are_those_of_the_learner(cartpole):
    policy = LearnedPolicy.from_file(read_model(cartpole.path), *spaces_of("CartPole-v1"))
    obs = np.random.default_rng(0).normal(0.0, 3.0, (256, 4)).astype(np.float32)
    normalized = cartpole.normalize(obs)
    expected, _ = cartpole.model.predict(normalized, deterministic=True)
    np.testing.assert_array_equal(policy.act(obs), expected)
    # Clipping is in effect, and without the statistics the actions differ.
    assert np.abs(normalized).max() == 2.0
    assert (LearnedPolicy(cartpole.model.policy).act(obs) != expected).any()
    assert len(np.unique(expected)) == 2


class PictureEnv(gym.Env[np.ndarray, int]):
    """Images with the channels last, as in most environments."""

    observation_space = spaces.Box(0, 255, (36, 40, 3), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.integers(0, 256, (36, 40, 3), np.uint8), {}

    def step(self, action):
        picture = self.np_random.integers(0, 256, (36, 40, 3), np.uint8)
        return picture, float(action == 1), self.np_random.random() < 0.3, False, {}


@pytest.fixture
def picture_env():
    gym.register("Picture-v0", PictureEnv, max_episode_steps=10)
    yield "Picture-v0"
    del gym.registry["Picture-v0"]


def test_an_image_policy_acts_as_its_learner(train, picture_env):
    run = train(env=picture_env, steps=16, ppo=PPOSettings(n_steps=8, batch_size=8, n_epochs=1))
    model = read_model(run.path)
    assert model.card.policy.kind == "CnnPolicy"
    policy = LearnedPolicy.from_file(model, *spaces_of(picture_env))
    pictures = sample(PictureEnv.observation_space, 16)
    expected, _ = run.model.predict(pictures, deterministic=True)
    np.testing.assert_array_equal(policy.act(pictures), expected)


def test_building_a_policy_does_not_draw_from_the_global_generator(racer):
    model = read_model(racer.path)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    policy = LearnedPolicy.from_file(model, *racer_spaces(model.card))
    policy.act(sample(racer_spaces(model.card)[0], 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_policy_has_its_own_copy_of_the_weights(racer):
    model = read_model(racer.path)
    policy = LearnedPolicy.from_file(model, *racer_spaces(model.card))
    obs = sample(racer_spaces(model.card)[0], 8)
    before = policy.act(obs)
    for array in model.weights.values():
        array[...] = 0
    np.testing.assert_array_equal(policy.act(obs), before)


def test_numpy_print_options_do_not_matter(racer):
    model = read_model(racer.path)
    with np.printoptions(linewidth=30):
        LearnedPolicy.from_file(model, *racer_spaces(model.card))


# --- refusals ---


def test_spaces_of_another_environment_are_refused(cartpole):
    model = read_model(cartpole.path)
    observations, actions = spaces_of("CartPole-v1")
    pendulum = spaces_of("Pendulum-v1")
    text = refusal(model, pendulum[0], actions)
    assert text.startswith("its observations are Box([-4.8")
    assert "this environment's are Box([-1. -1. -8.], [1. 1. 8.], (3,), float32)." in text
    text = refusal(model, observations, pendulum[1])
    assert text.startswith("its actions are Discrete(2); this environment's are Box(-2.0, 2.0, (1,), float32).")


def test_other_bounds_of_the_same_observations_are_accepted(cartpole):
    """EnvPool prints other bounds than Gymnasium; shape and type tell whether the network fits."""
    model = read_model(cartpole.path)
    observations, actions = spaces_of("CartPole-v1")
    unbounded = spaces.Box(-np.inf, np.inf, observations.shape, observations.dtype)
    one, other = (LearnedPolicy.from_file(model, space, actions) for space in (observations, unbounded))
    rows = np.linspace(-2.0, 2.0, 40, dtype=np.float32).reshape(10, 4)
    np.testing.assert_array_equal(one.act(rows), other.act(rows))
    for wrong in (spaces.Box(-1.0, 1.0, (4,), np.float64), spaces.Box(-1.0, 1.0, (4, 1), np.float32)):
        assert "this environment's are Box(-1.0, 1.0, (4," in refusal(model, wrong, actions)


def test_another_stack_is_refused(racer):
    model = read_model(racer.path)
    text = refusal(model, stacked_observation_space(16), action_space())
    assert text.startswith("its observations are Box([")
    assert "(32,), float32); this environment's are Box([" in text
    assert "(224,), float32). Use a model of this environment." in text
    assert len(text) < 400


@pytest.mark.parametrize("change", ["algorithm", "wider", "deeper", "missing", "more", "foreign"])
def test_weights_that_do_not_fit_the_card_are_refused(racer, soft_racer, change):
    model = read_model(racer.path)
    card, weights = model.card, dict(model.weights)
    if change == "algorithm":
        card = replace(card, algorithm="sac")
    elif change == "wider":
        card = replace(card, policy=replace(card.policy, net_arch=(16, 9)))
    elif change == "deeper":
        card = replace(card, policy=replace(card.policy, net_arch=(16, 8, 8)))
    elif change == "missing":
        weights.pop("action_net.bias")
    elif change == "more":
        weights["spare"] = np.zeros(1, np.float32)
    else:
        weights = read_model(soft_racer.path).weights
    text = refusal(replace(model, card=card, weights=weights), *racer_spaces(card))
    assert text == "its weights do not fit the network that its card describes. Use another model."


def test_a_policy_kind_that_does_not_fit_the_observations_is_refused(racer):
    model = read_model(racer.path)
    card = replace(model.card, policy=replace(model.card.policy, kind="CnnPolicy"))
    text = refusal(replace(model, card=card), *racer_spaces(card))
    assert text.startswith("policy.kind: CnnPolicy does not suit observations Box([")


def test_a_huge_network_is_refused_before_it_is_built(racer, monkeypatch):
    model = read_model(racer.path)
    card = replace(model.card, policy=PolicySettings("MlpPolicy", (65_536, 2048)))
    monkeypatch.setattr(policy, "ALGORITHMS", {})  # building it would need these
    assert "do not fit the network" in refusal(replace(model, card=card), *racer_spaces(card))


def test_many_pictures_are_refused_before_their_networks_are_built(racer, monkeypatch):
    """Each picture has a network of its own, of far more weights than the picture has values."""
    pictures = spaces.Dict({str(index): spaces.Box(0, 255, (36, 36, 1), np.uint8) for index in range(20)})
    model = read_model(racer.path)
    card = replace(
        model.card, policy=PolicySettings("MultiInputPolicy"), observation_space=space_data(pictures), clip_obs=None
    )
    weights = {"w": np.zeros(20 * 36 * 36 * 10, np.float32)}
    monkeypatch.setattr(policy, "ALGORITHMS", {})  # building them would need these
    text = refusal(replace(model, card=card, weights=weights), pictures, action_space())
    assert "do not fit the network" in text


def test_weights_that_overflow_give_a_one_line_error(cartpole):
    model = read_model(cartpole.path)
    weights = {name: np.full_like(array, 3e38) for name, array in model.weights.items()}
    with pytest.raises(ModelError, match=r"^the policy gives no action [^\n]* use an earlier model\.$"):
        LearnedPolicy.from_file(replace(model, weights=weights)).act(np.ones((1, 4), np.float32))


@pytest.mark.parametrize("name", ["obs_mean", "obs_var"])
def test_statistics_of_another_shape_are_refused_even_if_they_would_broadcast(racer, name):
    model = read_model(racer.path)
    forged = replace(model, normalizer={**model.normalizer, name: np.ones(1)})
    text = refusal(forged, *racer_spaces(model.card))
    assert text.startswith("its normalizer does not fit its observations.")


# --- policy settings ---


PICTURE = spaces.Box(0, 255, (64, 64, 3), np.uint8)


@pytest.mark.parametrize(
    ("observations", "kind"),
    [
        (spaces.Box(-1, 1, (14,)), "MlpPolicy"),
        (spaces.Discrete(3), "MlpPolicy"),
        (PICTURE, "CnnPolicy"),
        (spaces.Box(0, 255, (3, 64, 36), np.uint8), "CnnPolicy"),
        (spaces.Box(0, 255, (7, 7, 3), np.uint8), "MlpPolicy"),  # too small for the library's convolutions
        (spaces.Box(0, 1, (64, 64, 3)), "MlpPolicy"),  # no picture to the library
        (spaces.Dict({"a": PICTURE}), "MultiInputPolicy"),
    ],
)
def test_the_policy_kind_follows_from_the_observations(observations, kind):
    assert policy_kind(PolicySettings(), observations) == kind
    assert policy_kind(PolicySettings(kind=kind), observations) == kind


@pytest.mark.parametrize(
    ("observations", "kind"),
    [
        (spaces.Box(-1, 1, (14,)), "CnnPolicy"),
        (spaces.Box(0, 255, (7, 7, 3), np.uint8), "CnnPolicy"),
        (PICTURE, "MultiInputPolicy"),
        (spaces.Dict({"a": PICTURE}), "MlpPolicy"),
    ],
)
def test_a_policy_that_does_not_suit_the_observations_is_refused(observations, kind):
    with pytest.raises(ConfigError, match=f"policy.kind: {kind} does not suit observations"):
        policy_kind(PolicySettings(kind=kind), observations)


def test_images_may_be_flattened():
    assert policy_kind(PolicySettings(kind="MlpPolicy"), PICTURE) == "MlpPolicy"


def test_networks_get_images_with_the_channels_first():
    first = spaces.Box(0, 255, (3, 64, 64), np.uint8)
    flat = spaces.Box(-1, 1, (14,))
    assert network_observations(PICTURE) == first == VecTransposeImage.transpose_space(PICTURE)
    assert network_observations(first) == first
    assert network_observations(flat) is flat
    assert network_observations(spaces.Dict({"a": PICTURE, "b": flat})) == spaces.Dict({"a": first, "b": flat})


def test_only_settings_that_differ_from_none_are_passed_on():
    assert policy_arguments(PolicySettings(), "ppo") == {}
    settings = PolicySettings(net_arch=(64, 32), activation="elu", log_std_init=-1.0)
    assert policy_arguments(settings, "ppo") == {
        "net_arch": [64, 32],
        "activation_fn": torch.nn.ELU,
        "log_std_init": -1.0,
    }
    assert "log_std_init" not in policy_arguments(settings, "sac")
