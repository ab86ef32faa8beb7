"""ONNX export: onnxruntime gives our own policy's actions from raw observations, and the metadata is the card.

For the racer they are the compiled driver's, bit for bit.
"""

import json
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import spaces

from hotlap.config import build, snake_case
from hotlap.envs.spaces import OBSERVATION_LAYOUTS
from hotlap.errors import ModelError
from hotlap.models.actor import pack_model
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import ModelCard, ModelFile, PolicySettings, read_model
from hotlap.models.onnx_export import export_onnx, metadata, policy_graph
from hotlap.models.onnx_graph import OPSET
from hotlap.models.policy import LearnedPolicy
from hotlap.models.shipped_models import champion_tracks, find_shipped
from hotlap.models.space_data import space_data
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from models.conftest import RUNS
from models.sample_spaces import SPACES

CLOSE = 1e-5  # of other environments than the racer: onnxruntime adds up a layer in another order than PyTorch
RACER = {"stack": 2, "lap_fourier": 3, "action_repeat": 3}  # of "ppo-racer"
pytestmark = pytest.mark.timeout(60)  # the first to ask for a run waits for its training


def with_large_weights(model: ModelFile, seed: int = 1) -> ModelFile:
    """The same model with weights so large that its actions fill their range and reach the bounds."""
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(0.0, 1.5 / np.sqrt(array.shape[-1]), array.shape).astype(np.float32)
        for name, array in model.weights.items()
    }
    return replace(model, weights=weights)


def real_observations(card: ModelCard, count: int) -> np.ndarray:
    if card.is_racer:
        env = RacerVecEnv(
            50, card.track, {"episode": {"start": "random"}}, stack=card.stack, observation=card.observation
        )
        env.seed(0)
        rows = [env.reset()]
    else:
        env = gym.make_vec(card.environment, num_envs=50, vectorization_mode="sync")
        rows = [env.reset(seed=0)[0]]
    env.action_space.seed(0)
    while len(rows) * 50 < count:
        actions = [env.action_space.sample() for _ in range(50)] if card.is_racer else env.action_space.sample()
        rows.append(env.step(np.array(actions))[0])
    env.close()
    return np.concatenate(rows).astype(np.float32)


def observations_for(card: ModelCard) -> np.ndarray:
    space = card.raw_observations
    rng = np.random.default_rng(0)
    random = rng.normal(0.0, 1.0, (2000, *space.shape)).astype(np.float32)
    wild = rng.normal(0.0, 50.0, (500, *space.shape)).astype(np.float32)
    return np.concatenate([real_observations(card, 2000), random, wild])


def runtime(model: ModelFile, folder: Path) -> onnxruntime.InferenceSession:
    path = folder / "policy.onnx"
    export_onnx(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def act(session: onnxruntime.InferenceSession, obs: np.ndarray) -> np.ndarray:
    [actions] = session.run(["action"], {"observation": obs})
    return actions


def driver_actions(model: ModelFile, obs: np.ndarray) -> np.ndarray:
    """What the compiled driver does at these stacked observations."""
    packed = pack_model(model)
    memory = make_memory(packed, len(obs))
    for part in np.split(obs, model.card.stack, axis=1):
        decide_cars(packed, np.ascontiguousarray(part), memory)
    return memory.actions


def assert_same_actions(model: ModelFile, obs: np.ndarray, folder: Path) -> np.ndarray:
    theirs = act(runtime(model, folder), obs)
    ours = driver_actions(model, obs) if model.card.is_racer else LearnedPolicy.from_file(model).act(obs)
    assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)
    if model.card.is_racer:
        np.testing.assert_array_equal(theirs.view(np.uint32), ours.view(np.uint32))
    else:
        np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=CLOSE)
    return ours


# --- actions ---


@pytest.mark.parametrize("name", RUNS)
def test_it_acts_as_our_own_policy(exported_run, tmp_path, name):
    model = with_large_weights(exported_run(name))
    obs = observations_for(model.card)
    actions = assert_same_actions(model, obs, tmp_path)
    _, space = model.card.spaces
    if isinstance(space, spaces.Discrete):
        assert set(np.unique(actions)) == {0, 1}
    else:
        # Each action reaches both bounds, or nearly so where squashed, and values between them.
        reach = (actions - space.low) / (space.high - space.low)
        assert (reach.min(axis=0) < 0.05).all()
        assert (reach.max(axis=0) > 0.95).all()
        assert ((reach > 0.25) & (reach < 0.75)).any(axis=0).all()


@pytest.mark.parametrize("name", ["ppo-racer", "sac-racer", "ppo-cartpole"])
def test_the_model_as_trained_acts_the_same(exported_run, tmp_path, name):
    model = exported_run(name)
    assert_same_actions(model, real_observations(model.card, 1000), tmp_path)


@pytest.mark.parametrize("count", [1, 7])
def test_the_batch_size_is_free(exported_run, tmp_path, count):
    model = exported_run("ppo-racer")
    obs = observations_for(model.card)[:count]
    assert act(runtime(model, tmp_path), obs).shape == (count, 3)


@pytest.mark.parametrize("track", champion_tracks())
def test_a_champion_acts_bit_for_bit_as_the_compiled_driver(tmp_path, track):
    model = read_model(find_shipped("champion", track))
    assert (model.card.observation, model.card.lap_fourier) == ("road", 16)
    assert_same_actions(model, observations_for(model.card), tmp_path)


def test_the_generalist_acts_bit_for_bit_as_the_compiled_driver(tmp_path):
    model = read_model(find_shipped("generalist", "track-01"))
    assert_same_actions(model, model.card.raw_observations.low[None] + np.zeros((3, 58), np.float32), tmp_path)


def test_lap_progress_over_the_whole_lap_gives_the_drivers_fourier_features(exported_run, tmp_path):
    model = with_large_weights(exported_run("ppo-racer"))
    obs = np.zeros((20_001, 28), np.float32)
    obs[:, 14 + 12] = np.linspace(0.0, 1.0, len(obs), dtype=np.float32)
    assert_same_actions(model, obs, tmp_path)


@pytest.mark.parametrize("name", ["ppo-racer", "ppo-cartpole"])
def test_a_feature_that_hardly_varied_is_normalized_precisely(exported_run, tmp_path, name):
    model = with_large_weights(exported_run(name))
    mean, var = model.normalizer["obs_mean"].copy(), model.normalizer["obs_var"].copy()
    mean[:4], var[:4] = 0.7, 0.0  # divided by 1e-4: in float32 the difference would be off by a thousandth
    model = replace(model, normalizer={**model.normalizer, "obs_mean": mean, "obs_var": var})
    obs = observations_for(model.card)
    obs[:, :4] = np.float32(0.7) + np.random.default_rng(2).normal(0.0, 1e-4, (len(obs), 4)).astype(np.float32)
    assert_same_actions(model, obs, tmp_path)


# --- other spaces; the models are not trained ---


def untrained(name: str, algorithm: str = "a2c") -> ModelFile:
    observations, actions = SPACES[name]
    kind = "MultiInputPolicy" if isinstance(observations, spaces.Dict) else "MlpPolicy"
    network = ALGORITHMS[algorithm].policies[kind](observations, actions, lambda _: 0.0, net_arch=[8])
    weights = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    card = ModelCard(
        algorithm=algorithm,
        environment=name,
        seed=0,
        step=0,
        config_digest="",
        weights_digest=tensors_digest(weights),
        policy=PolicySettings(kind, (8,)),
        observation_space=space_data(observations),
        action_space=space_data(actions),
    )
    return with_large_weights(ModelFile(Path("untrained.zip"), card, weights, {}))


@pytest.mark.parametrize("algorithm", ["a2c", "sac"])
def test_observations_and_actions_may_have_several_dimensions(tmp_path, algorithm):
    model = untrained("matrices", algorithm)
    obs = np.random.default_rng(0).normal(0.0, 3.0, (3000, 2, 3)).astype(np.float32)
    assert assert_same_actions(model, obs, tmp_path).shape == (3000, 2, 2)


@pytest.mark.parametrize("name", ["dict", "discrete", "pictures"])
def test_dicts_choices_and_pictures_as_observations_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match=r"untrained.zip: its observations are .*without pictures\. Use --format sb3"):
        export_onnx(untrained(name), tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["multi-discrete", "multi-binary"])
def test_multi_discrete_and_multi_binary_actions_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match=r"its actions are Multi.*supports Box and Discrete"):
        export_onnx(untrained(name), tmp_path / "policy.onnx")


def test_weights_that_do_not_fit_are_refused(exported_run, tmp_path):
    model = exported_run("ppo-racer")
    weights = {name: array for name, array in model.weights.items() if name != "action_net.bias"}
    with pytest.raises(ModelError, match="do not fit the network"):
        export_onnx(replace(model, weights=weights), tmp_path / "policy.onnx")


# --- the file ---


def test_the_metadata_is_the_card(exported_run, tmp_path):
    card = exported_run("ppo-racer").card
    told = runtime(exported_run("ppo-racer"), tmp_path).get_modelmeta().custom_metadata_map
    assert (told["environment"], told["track"]) == ("hotlap/Racer-v0", "track-01")
    assert (told["physics"], told["observation_layout"]) == (PHYSICS_VERSION, OBSERVATION_LAYOUTS["rays"])
    assert {name: json.loads(told[name]) for name in RACER} == RACER
    assert json.loads(told["step"]) == card.step == 100
    assert told["weights_digest"] == tensors_digest(exported_run("ppo-racer").weights)
    assert told.pop("observation") == "rays"
    texts = {name for name, value in card.as_plain().items() if isinstance(value, str)}
    again = {name: value if name in texts else json.loads(value) for name, value in told.items()}
    assert build(ModelCard, again, "metadata", snake_case) == card


def test_fields_that_are_none_are_left_out_of_the_metadata(exported_run):
    assert {"physics", "observation_layout", "track", "clip_obs"}.isdisjoint(
        metadata(exported_run("a2c-cartpole-bare").card)
    )


def test_names_types_and_shapes_of_input_and_output(exported_run, tmp_path):
    session = runtime(exported_run("ppo-racer"), tmp_path)
    [entry], [output] = session.get_inputs(), session.get_outputs()
    assert (entry.name, entry.type, entry.shape) == ("observation", "tensor(float)", ["N", 2 * 14])
    assert (output.name, output.type, output.shape) == ("action", "tensor(float)", ["N", 3])


def test_a_discrete_action_is_one_int64(exported_run, tmp_path):
    [output] = runtime(exported_run("ppo-cartpole"), tmp_path).get_outputs()
    assert (output.type, output.shape) == ("tensor(int64)", ["N"])


def test_the_file_is_self_contained_and_holds_the_actor_only(exported_run):
    found = policy_graph(exported_run("sac-racer"))
    assert [(opset.domain, opset.version) for opset in found.opset_import] == [("", OPSET)]
    assert OPSET >= 17
    assert all(constant.data_location == onnx.TensorProto.DEFAULT for constant in found.graph.initializer)
    held = sum(int(np.prod(constant.dims)) for constant in found.graph.initializer)
    weights = exported_run("sac-racer").weights
    acting = sum(weights[name].size for name in weights if name.startswith(("actor.latent_pi", "actor.mu")))
    assert acting <= held <= acting + 100


def test_the_same_model_gives_the_same_bytes(exported_run, tmp_path):
    for name in ("one.onnx", "two.onnx"):
        export_onnx(exported_run("ppo-racer"), tmp_path / name)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
