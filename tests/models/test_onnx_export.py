"""ONNX: a foreign runtime does from raw observations what our own policy does, and is told what it must know."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import spaces

from hotlap.config import build, snake_case
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.errors import ModelError
from hotlap.models.archive import tensors_digest
from hotlap.models.exchange import spaces_of
from hotlap.models.model_file import ModelCard, ModelFile, PolicySettings, read_model
from hotlap.models.onnx_export import OPSET, export_onnx, metadata, policy_graph
from hotlap.models.policy import POLICIES, LearnedPolicy
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.vec_envs.racer import RacerVecEnv
from shaped_worlds import SHAPES, registered
from tiny_runs import tiny_config, train

CLOSE = 1e-5
BARE = {"obs": False, "reward": False}
SEEN = {"stack": 2, "lap_fourier": 3, "action_repeat": 3}

RUNS: dict[str, dict[str, Any]] = {
    "ppo-racer": {"algo": "ppo", "num_envs": 4, "racer": SEEN, "policy": {"net_arch": [16, 8], "activation": "elu"}},
    "a2c-racer-bare": {"algo": "a2c", "num_envs": 4, "normalize": BARE},
    "sac-racer": {"algo": "sac", "num_envs": 4, "policy": {"net_arch": [8, 8], "activation": "tanh"}},
    "sac-pendulum-bare": {"algo": "sac", "env": "Pendulum-v1", "normalize": BARE},
    "ppo-cartpole": {"algo": "ppo", "env": "CartPole-v1"},
    "a2c-cartpole-bare": {
        "algo": "a2c", "env": "CartPole-v1", "normalize": BARE, "policy": {"activation": "relu", "net_arch": []},
    },
}  # fmt: skip

pytestmark = pytest.mark.timeout(60)  # the first to ask for a run waits for its training


@pytest.fixture(scope="module")
def trained(compiled, tmp_path_factory):
    """The final model of a run, by its name among RUNS."""

    @cache
    def model(name: str) -> ModelFile:
        config, folder = tiny_config(**RUNS[name]), tmp_path_factory.mktemp(name)
        train(config, folder)
        return read_model(folder / f"{config.experiment_id}_model.zip")

    return model


def grown(model: ModelFile, seed: int = 1) -> ModelFile:
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
            50, card.track, {"episode": {"start": "random"}}, stack=card.stack, lap_fourier=card.lap_fourier
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
    space, _ = spaces_of(card)
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


def own_policy(model: ModelFile) -> LearnedPolicy:
    return LearnedPolicy.from_file(model, *spaces_of(model.card))


# --- what it does ---


@pytest.mark.parametrize("name", RUNS)
def test_it_acts_as_our_own_policy_does(trained, tmp_path, name):
    model = grown(trained(name))
    obs = observations_for(model.card)
    mine, theirs = own_policy(model).act(obs), act(runtime(model, tmp_path), obs)
    assert theirs.shape == mine.shape
    assert theirs.dtype == mine.dtype
    np.testing.assert_allclose(theirs, mine, rtol=0.0, atol=CLOSE)
    _, space = spaces_of(model.card)
    if isinstance(space, spaces.Discrete):
        assert set(np.unique(mine)) == {0, 1}
    else:
        # The comparison means something: each action comes to either bound, or near it where squashed, and between.
        reach = (mine - space.low) / (space.high - space.low)
        assert (reach.min(axis=0) < 0.05).all()
        assert (reach.max(axis=0) > 0.95).all()
        assert ((reach > 0.25) & (reach < 0.75)).any(axis=0).all()


@pytest.mark.parametrize("name", ["ppo-racer", "sac-racer", "ppo-cartpole"])
def test_the_model_as_trained_acts_the_same(trained, tmp_path, name):
    model = trained(name)
    obs = real_observations(model.card, 1000)
    np.testing.assert_allclose(act(runtime(model, tmp_path), obs), own_policy(model).act(obs), rtol=0.0, atol=CLOSE)


@pytest.mark.parametrize("count", [1, 7])
def test_any_number_of_rows_will_do(trained, tmp_path, count):
    model = trained("ppo-racer")
    obs = observations_for(model.card)[:count]
    assert act(runtime(model, tmp_path), obs).shape == (count, 3)


def test_a_number_that_hardly_varied_is_normalized_as_exactly_as_in_training(trained, tmp_path):
    model = grown(trained("ppo-racer"))
    mean, var = model.normalizer["obs_mean"].copy(), model.normalizer["obs_var"].copy()
    mean[:4], var[:4] = 0.7, 0.0  # divided by 1e-4: in float32 the difference alone would be off by a thousandth
    model = replace(model, normalizer={**model.normalizer, "obs_mean": mean, "obs_var": var})
    obs = observations_for(model.card)
    obs[:, :4] = 0.7 + np.random.default_rng(2).normal(0.0, 1e-4, (len(obs), 4)).astype(np.float32)
    np.testing.assert_allclose(act(runtime(model, tmp_path), obs), own_policy(model).act(obs), rtol=0.0, atol=CLOSE)


# --- environments of other shapes, whose models nobody needs to train ---


@pytest.fixture(autouse=True)
def shaped():
    with registered():
        yield


def untrained(name: str, algorithm: str = "a2c") -> ModelFile:
    observations, actions = SHAPES[name]
    kind = "MultiInputPolicy" if isinstance(observations, spaces.Dict) else "MlpPolicy"
    network = POLICIES[algorithm][kind](observations, actions, lambda _: 0.0, net_arch=[8])
    weights = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    card = ModelCard(
        algorithm, name, 0, 0, "", tensors_digest(weights), PolicySettings(kind, (8,)), str(observations), str(actions)
    )
    return grown(ModelFile(Path("untrained.zip"), card, weights, {}))


@pytest.mark.parametrize("algorithm", ["a2c", "sac"])
def test_observations_and_actions_may_be_tables(tmp_path, algorithm):
    model = untrained("Tables-v0", algorithm)
    obs = np.random.default_rng(0).normal(0.0, 3.0, (3000, 2, 3)).astype(np.float32)
    theirs = act(runtime(model, tmp_path), obs)
    assert theirs.shape == (3000, 2, 2)
    np.testing.assert_allclose(theirs, own_policy(model).act(obs), rtol=0.0, atol=CLOSE)


@pytest.mark.parametrize("name", ["Keys-v0", "Places-v0", "Pictures-v0"])
def test_observations_that_are_no_rows_of_numbers_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match=r"untrained.zip: sees .*rows of numbers.* Use --format sb3"):
        export_onnx(untrained(name), tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Choices-v0", "Switches-v0"])
def test_actions_that_are_neither_numbers_nor_one_choice_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match=r"its actions are Multi.*only Box and Discrete"):
        export_onnx(untrained(name), tmp_path / "policy.onnx")


def test_weights_that_do_not_fit_are_refused(trained, tmp_path):
    model = trained("ppo-racer")
    weights = {name: array for name, array in model.weights.items() if name != "action_net.bias"}
    with pytest.raises(ModelError, match="do not fit the network"):
        export_onnx(replace(model, weights=weights), tmp_path / "policy.onnx")


# --- what it says ---


def test_the_metadata_are_the_models_card(trained, tmp_path):
    card = trained("ppo-racer").card
    told = runtime(trained("ppo-racer"), tmp_path).get_modelmeta().custom_metadata_map
    assert (told["environment"], told["track"]) == ("hotlap/Racer-v0", "track-01")
    assert (told["physics"], told["observation_layout"]) == (PHYSICS_VERSION, OBSERVATION_LAYOUT)
    assert {name: json.loads(told[name]) for name in SEEN} == SEEN
    assert json.loads(told["step"]) == card.step == 100
    assert told["weights_digest"] == tensors_digest(trained("ppo-racer").weights)
    texts = {name for name, value in card.as_plain().items() if isinstance(value, str)}
    again = {name: value if name in texts else json.loads(value) for name, value in told.items()}
    assert build(ModelCard, again, "metadata", snake_case) == card


def test_what_a_model_has_not_is_not_among_its_metadata(trained):
    assert {"physics", "observation_layout", "track", "clip_obs"}.isdisjoint(
        metadata(trained("a2c-cartpole-bare").card)
    )


def test_input_and_output_are_named_and_shaped_as_promised(trained, tmp_path):
    session = runtime(trained("ppo-racer"), tmp_path)
    [entry], [output] = session.get_inputs(), session.get_outputs()
    assert (entry.name, entry.type, entry.shape) == ("observation", "tensor(float)", ["N", 2 * 14 + 2 * 3])
    assert (output.name, output.type, output.shape) == ("action", "tensor(float)", ["N", 3])


def test_one_choice_is_one_whole_number(trained, tmp_path):
    [output] = runtime(trained("ppo-cartpole"), tmp_path).get_outputs()
    assert (output.type, output.shape) == ("tensor(int64)", ["N"])


def test_the_file_stands_alone_on_standard_operators(trained):
    found = policy_graph(trained("sac-racer"))
    assert [(opset.domain, opset.version) for opset in found.opset_import] == [("", OPSET)]
    assert OPSET >= 17
    assert all(constant.data_location == onnx.TensorProto.DEFAULT for constant in found.graph.initializer)
    # Only what acts is inside: a critic would be as large again.
    held = sum(int(np.prod(constant.dims)) for constant in found.graph.initializer)
    weights = trained("sac-racer").weights
    acting = sum(weights[name].size for name in weights if name.startswith(("actor.latent_pi", "actor.mu")))
    assert acting <= held <= acting + 100


def test_the_same_model_gives_the_same_bytes(trained, tmp_path):
    for name in ("one.onnx", "two.onnx"):
        export_onnx(trained("ppo-racer"), tmp_path / name)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
