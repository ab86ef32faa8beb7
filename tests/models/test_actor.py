"""A model packed without a learning library is the network that the library builds of it, to within 1e-5."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.observations import ObservationStack, stacked_observation_space
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import OBSERVATION_LAYOUTS, action_space, num_observations
from hotlap.errors import DriverError, ModelError
from hotlap.models.actor import network_shapes, pack_model
from hotlap.models.actor_layers import ACTORS
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import ModelFile, PolicySettings, read_model, write_model
from hotlap.models.policy import LearnedPolicy, activation_name, policy_arguments
from hotlap.models.shipped_models import SHIPPED_FOLDER
from hotlap.models.space_data import space_data
from hotlap.sim.batch_cpu import CpuEngine

TOLERANCE = 1e-5  # the kernel sums in another order than torch
NUM_CARS, NUM_DECISIONS = 8, 150
NARROW = PolicySettings("MlpPolicy", (8,), "tanh")


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED_FOLDER.glob("*.zip")))
def test_the_models_that_come_with_the_package_drive_like_their_networks(compiled, name):
    """Tiny models of every algorithm and activation: `tests/drivers/test_packed.py`."""
    model = read_model(SHIPPED_FOLDER / f"{name}.zip")
    card, policy, driver = model.card, LearnedPolicy.from_file(model), PackedDriver.from_model(model)
    assert card.policy.action_head == "pedal_axis"
    settings = RacerSettings.load({"episode": {"start": "random"}})
    fleet = Fleet([card.track or "track-01"], settings, NUM_CARS, CpuEngine(), card.observation)
    fleet.seed(np.arange(NUM_CARS, dtype=np.uint64))
    fleet.reset()
    driver.begin(fleet, seed=0)
    stack = ObservationStack(NUM_CARS, card.stack, num_observations(card.observation), card.lap_fourier)
    seen = []
    for _ in range(NUM_DECISIONS):
        stack.push(fleet.batch.obs)
        seen.append(policy.act(stack.value))
        for _ in range(card.action_repeat):
            actions = driver.act(fleet.batch.obs)
            assert np.abs(actions - seen[-1]).max() < TOLERANCE
            fleet.step(actions, autoreset=False)
    assert np.std(np.stack(seen)[..., 0]) > 0.05


def test_a_model_of_the_second_version_of_the_road_is_written_read_and_drives(racer, tmp_path):
    space = stacked_observation_space(1, 0, "road-2")
    card = replace(
        read_model(racer.path).card, observation_layout=OBSERVATION_LAYOUTS["road-2"], policy=NARROW, clip_obs=None,
        stack=1, lap_fourier=0, observation_space=space_data(space),
    )  # fmt: skip
    rng, path = np.random.default_rng(0), tmp_path / "model.zip"
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in network_shapes(card).items()}
    write_model(path, ModelFile(path, card, weights, {}))
    model = read_model(path)
    driver = PackedDriver.from_model(model)
    assert model.card.observation == driver.observation == "road-2"
    fleet = Fleet(["track-02"], RacerSettings(), NUM_CARS, CpuEngine(), driver.observation)
    fleet.reset()
    driver.begin(fleet, seed=0)
    for _ in range(30):
        obs = fleet.batch.obs.astype(np.float64)
        for layer in ("mlp_extractor.policy_net.0", "action_net"):
            obs = np.tanh(obs) if layer == "action_net" else obs
            obs = obs @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
        actions = driver.act(fleet.batch.obs)
        driver.begin(fleet, seed=0)  # decides anew on every tick
        assert np.abs(actions - np.clip(obs, action_space().low, action_space().high)).max() < TOLERANCE
        fleet.step(actions, autoreset=False)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@pytest.mark.parametrize(
    "settings",
    [
        PolicySettings(),
        PolicySettings(net_arch=()),
        NARROW,
        replace(NARROW, critic_arch=()),
        replace(NARROW, net_arch=(8, 4, 6), critic_arch=(5, 7)),
        replace(NARROW, action_head="pedal_axis"),
        replace(NARROW, action_head="pedal_axis", critic_arch=(8, 2)),
    ],
)
def test_the_shapes_of_the_weights_are_those_of_the_library(racer, algorithm, settings):
    card = replace(read_model(racer.path).card, algorithm=algorithm, policy=settings)
    network = ALGORITHMS[algorithm].policies["MlpPolicy"](
        card.racer_observations, action_space(), lambda _: 0.0, **policy_arguments(settings, algorithm)
    )
    assert network_shapes(card) == {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_the_default_activation_is_that_of_the_library(racer, algorithm):
    card = replace(read_model(racer.path).card, algorithm=algorithm, policy=PolicySettings())
    assert ACTORS[algorithm].default_activation == activation_name(card)


def test_a_model_that_does_not_fit_is_refused(racer):
    model = read_model(racer.path)
    layer = "action_net.weight"
    for weights in (
        {name: array for name, array in model.weights.items() if name != layer},
        {**model.weights, layer: model.weights[layer][:, :-1]},
        {**model.weights, layer: model.weights[layer].ravel()},
        {name: array for name, array in model.weights.items() if name != "value_net.bias"},
        {**model.weights, "spare": np.zeros(1, np.float32)},
    ):
        with pytest.raises(ModelError, match="do not fit the network"):
            pack_model(replace(model, weights=weights))
    for changes in ({"algorithm": "sac"}, {"policy": replace(model.card.policy, net_arch=None)}):
        with pytest.raises(ModelError, match="do not fit the network"):
            pack_model(replace(model, card=replace(model.card, **changes)))
    with pytest.raises(DriverError, match="it cannot drive"):
        pack_model(replace(model, card=replace(model.card, environment="CartPole-v1")))
    with pytest.raises(ModelError, match="normalizer does not fit"):
        pack_model(replace(model, normalizer={**model.normalizer, "obs_mean": np.zeros(3)}))
    with pytest.raises(ModelError, match=r"its observations are Box.*; this environment's are Box"):
        pack_model(replace(model, card=replace(model.card, stack=3)))
    no_actions = space_data(model.card.racer_observations)
    with pytest.raises(ModelError, match="its actions are Box"):
        pack_model(replace(model, card=replace(model.card, action_space=no_actions)))
    with pytest.raises(ModelError, match=r"policy\.kind: CnnPolicy does not suit observations Box"):
        pack_model(replace(model, card=replace(model.card, policy=replace(model.card.policy, kind="CnnPolicy"))))
