"""`hotlap export` and `hotlap import`: the files, the output, and refusals in one line."""

import json
import pickle
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from stable_baselines3 import PPO

from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import find_shipped
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from tiny_runs import recipe_config, tiny_config, train

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "models.md"

pytestmark = pytest.mark.timeout(60)  # the first test that needs a run waits for its training


@pytest.fixture(scope="module")
def runs(compiled, tmp_path_factory):
    """A folder with two runs in results/experiments: `ppo_seed42` of the default recipe and `cartpole`."""
    place = tmp_path_factory.mktemp("place")
    experiments = place / "results" / "experiments"
    train(recipe_config(), experiments / "ppo_seed42")
    train(tiny_config("ppo", "CartPole-v1", normalize={"obs": False, "reward": False}), experiments / "cartpole")
    return place


@pytest.fixture
def at_runs(runs, monkeypatch):
    monkeypatch.chdir(runs)
    return runs


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A model that plain stable-baselines3 saved."""
    path = tmp_path_factory.mktemp("plain") / "cartpole.zip"
    PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": [8]}, seed=1).save(path)
    return path


# --- export ---


@pytest.mark.parametrize("name", ["ppo_seed42", "results/experiments/ppo_seed42/ppo_seed42_model.zip"])
def test_a_run_or_a_model_is_exported_as_onnx(hotlap, at_runs, tmp_path, name):
    answer = hotlap("export", name, "--format", "onnx", "--out", tmp_path / "new" / "driver.onnx")
    assert (answer.code, answer.err) == (0, "")
    assert "ppo model of hotlap/Racer-v0, step 2,048" in answer.out
    assert str(tmp_path / "new" / "driver.onnx") in answer.out
    assert "drives with action_repeat 4, stack 1, lap_fourier 0, observation road" in answer.out
    session = onnxruntime.InferenceSession(str(tmp_path / "new" / "driver.onnx"))
    model = read_model(next(at_runs.glob("results/experiments/ppo_seed42/*_model.zip")))
    obs = np.random.default_rng(0).random((100, 58), np.float32)
    packed = pack_model(model)
    memory = make_memory(packed, len(obs))
    decide_cars(packed, obs, memory)
    np.testing.assert_array_equal(session.run(None, {"observation": obs})[0], memory.actions)


def test_a_run_is_exported_for_sb3_with_a_warning_about_pickles(hotlap, at_runs, tmp_path):
    answer = hotlap("export", "ppo_seed42", "--format", "sb3", "--out", tmp_path / "driver")
    assert answer.code == 0
    [line] = answer.err.splitlines()
    assert "pickle" in line
    assert list(tmp_path.iterdir()) == [tmp_path / "driver.zip"]
    assert str(tmp_path / "driver.zip") in answer.out
    assert PPO.load(tmp_path / "driver.zip").num_timesteps == 2048


def test_a_normalizer_of_another_environment_is_exported_beside_the_model(hotlap, at_runs, tmp_path, cartpole):
    answer = hotlap("export", cartpole.path, "--format", "sb3", "--out", tmp_path / "pole")
    assert answer.code == 0
    assert [str(path) in answer.out for path in sorted(tmp_path.iterdir())] == [True, True]


def test_the_output_for_other_environments_has_no_action_repeat(hotlap, at_runs, tmp_path):
    answer = hotlap("export", "cartpole", "--format", "onnx", "--out", tmp_path / "pole.onnx")
    assert "ppo model of CartPole-v1, step 100" in answer.out
    assert "action_repeat" not in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody", "--format", "onnx", "--out", "x.onnx"], "'nobody' is not known"),
        (["ppo_seed42", "--format", "tflite", "--out", "x.onnx"], "--format must be onnx or sb3, got 'tflite'"),
        (["ppo_seed42", "--format", "onnx"], "--out"),
        (["ppo_seed42", "--out", "x.onnx"], "--format"),
        (["ppo_seed42", "--format", "onnx", "--out", "."], "is a folder"),
        (["results/experiments/ppo_seed42/config.toml", "--format", "onnx", "--out", "x.onnx"], "config.toml"),
    ],
)
def test_bad_exports_are_refused_in_one_line(refused, at_runs, arguments, words):
    assert words in refused("export", *arguments)


@pytest.mark.parametrize("kind", ["onnx", "sb3"])
def test_a_model_is_not_overwritten_by_its_export(refused, at_runs, kind):
    path = next(at_runs.glob("results/experiments/ppo_seed42/*_model.zip"))
    before = path.read_bytes()
    assert "is the file to read from" in refused("export", path, "--format", kind, "--out", path)
    assert path.read_bytes() == before


def test_without_onnx_the_error_says_how_to_install_it(refused, at_runs, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "hotlap.models.onnx_export", raising=False)
    monkeypatch.setitem(sys.modules, "onnx", None)
    line = refused("export", "ppo_seed42", "--format", "onnx", "--out", tmp_path / "driver.onnx")
    assert line.endswith('Install it: pip install "hotlap[export]".')
    assert list(tmp_path.iterdir()) == []


# --- import ---


def test_an_imported_model_can_be_evaluated(hotlap, plain, tmp_path):
    out = tmp_path / "new" / "ours.zip"
    answer = hotlap("import", plain, "--trust-pickle", "--env", "CartPole-v1", "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert f"ppo model of CartPole-v1, step 0: {out}" in answer.out
    figures = hotlap("evaluate", out, "--episodes", 3, "--json").figures
    assert (figures["environment"], figures["episodes"]) == ("CartPole-v1", 3)
    assert figures["mean_reward"] >= 8.0


def test_the_default_output_is_beside_the_imported_file(hotlap, plain):
    assert hotlap("import", plain, "--trust-pickle", "--env", "CartPole-v1").code == 0
    assert read_model(plain.with_name("cartpole_hotlap.zip")).card.environment == "CartPole-v1"


def test_a_racer_is_exported_and_imported_again(hotlap, at_runs, tmp_path):
    hotlap("export", "ppo_seed42", "--format", "sb3", "--out", tmp_path / "driver")
    answer = hotlap("import", tmp_path / "driver.zip", "--trust-pickle", "--out", tmp_path / "back.zip")
    assert (answer.code, answer.err) == (0, "")
    assert "drives with action_repeat 4, stack 1, lap_fourier 0, observation road" in answer.out
    first = read_model(next(at_runs.glob("results/experiments/ppo_seed42/*_model.zip")))
    back = read_model(tmp_path / "back.zip")
    assert back.card.weights_digest == first.card.weights_digest
    assert (back.card.track, back.card.track_digest) == ("track-01", first.card.track_digest)
    np.testing.assert_array_equal(pack_model(back).numbers, pack_model(first).numbers)
    figures = hotlap("evaluate", tmp_path / "back.zip", "--episodes", 1, "--track", "track-02", "--json").figures
    assert figures["track"] == "track-02"


def test_a_racer_of_plain_sb3_is_taken_to_be_trained_with_the_present_physics(hotlap, tmp_path):
    env = RacerVecEnv(2, observation="road", lap_fourier=1)
    PPO("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, seed=1).save(tmp_path / "plain.zip")
    answer = hotlap(
        "import", tmp_path / "plain.zip", "--trust-pickle", "--observation", "road", "--lap-fourier", 1,
        "--action-repeat", 4, "--track", "track-02",
    )  # fmt: skip
    assert (answer.code, answer.err) == (0, "")
    assert f"taken to be trained with physics {PHYSICS_VERSION}" in answer.out
    card = read_model(tmp_path / "plain_hotlap.zip").card
    assert (card.observation, card.lap_fourier, card.action_repeat, card.track) == ("road", 1, 4, "track-02")


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def test_without_trust_pickle_nothing_is_unpickled(refused, plain, tmp_path):
    marker, pickle_path = tmp_path / "marker", tmp_path / "normalizer.pkl"
    pickle_path.write_bytes(pickle.dumps(Malicious(marker)))
    arguments = ("import", plain, "--env", "CartPole-v1", "--vecnormalize", pickle_path, "--out", tmp_path / "ours.zip")
    line = refused(*arguments)
    assert "loading a pickle can run any code" in line
    assert line.endswith("add --trust-pickle.")
    assert not marker.exists()
    refused(*arguments, "--trust-pickle")  # it is not a VecNormalize
    assert marker.exists()


def test_without_an_environment_the_spaces_must_be_those_of_the_racer(refused, plain):
    line = refused("import", plain, "--trust-pickle")
    assert "its observations are Box([-4.8" in line
    assert "--env" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "CartPole-v1", "--stack", "2"], "stack: only for hotlap/Racer-v0"),
        (["--env", "CartPole-v1", "--vecnormalize", "nowhere.pkl"], "nowhere.pkl: no such file"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
        (["--stack", "0"], "stack must be from 1 to 16 observations"),
        (["--action-repeat", "0"], "action_repeat must be from 1 to 60 ticks"),
    ],
)
def test_bad_imports_are_refused_in_one_line(refused, plain, tmp_path, arguments, words):
    assert words in refused("import", plain, "--trust-pickle", "--out", tmp_path / "ours.zip", *arguments)
    assert not (tmp_path / "ours.zip").exists()


@pytest.mark.parametrize("name", ["", "nowhere.zip", "x" * 300])
def test_a_missing_import_is_refused_in_one_line(refused, name):
    assert "no such file. Check the path" in refused("import", name, "--trust-pickle")


def test_importing_a_model_of_ours_is_refused(refused, at_runs):
    path = next(at_runs.glob("results/experiments/ppo_seed42/*_model.zip"))
    assert "is a model of Hotlap already" in refused("import", path, "--trust-pickle")


def test_the_imported_file_is_not_overwritten(refused, plain):
    before = plain.read_bytes()
    line = refused("import", plain, "--trust-pickle", "--env", "CartPole-v1", "--out", plain)
    assert "is the file to read from" in line
    assert plain.read_bytes() == before


# --- the documentation ---


@pytest.fixture(scope="module")
def champions(tmp_path_factory):
    """A folder with the champion of track-01 as the run of the documentation's examples."""
    place = tmp_path_factory.mktemp("champions")
    folder = place / "results" / "experiments" / "ppo_seed42"
    folder.mkdir(parents=True)
    shutil.copy(find_shipped("champion", "track-01"), folder / "ppo_seed42_best.zip")
    return place


@pytest.mark.parametrize("place", ["runs", "champions"])
def test_all_that_the_documentation_prints_runs(request, hotlap, place, monkeypatch):
    """On a model of the default recipe, and on the champion; the exported and imported model drives as the first."""
    monkeypatch.chdir(request.getfixturevalue(place))
    text = DOCUMENTATION.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["json", "", "", "python", "", "python", "", ""]
    figures = []
    for number, (kind, block) in enumerate(blocks, start=1):
        if kind == "python":
            scope: dict[str, Any] = {}
            exec(compile(block, f"models.md, block {number}", "exec"), scope)
            assert scope["env"].unwrapped.observation_space.shape == (58,)
            assert scope["info"]["tick"] > 0  # it was stepped with the model's actions
        for command in block.splitlines() if not kind else ():
            program, *arguments = command.split()
            if program == "pip" or arguments[0] == "push":  # test_push.py has the folder and a stand-in of the hub
                continue
            assert program == "hotlap"
            answer = hotlap(*arguments, *(["--json"] if arguments[0] == "evaluate" else []))
            assert answer.code == 0, answer
            figures += [answer.figures] if arguments[0] == "evaluate" else []
    first, back = figures
    assert first.pop("driver") != back.pop("driver")
    assert back == first


def test_the_documented_metadata_is_that_of_a_model(hotlap, at_runs, tmp_path):
    hotlap("export", "ppo_seed42", "--format", "onnx", "--out", tmp_path / "driver.onnx")
    metadata = onnxruntime.InferenceSession(str(tmp_path / "driver.onnx")).get_modelmeta().custom_metadata_map
    text = DOCUMENTATION.read_text(encoding="utf-8")
    [row] = re.findall(r"^Metadata: (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(\w+)`", row)) == set(metadata)
    assert json.loads(metadata["action_repeat"]) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("champion", "--track", ""), "none comes with the package for ''"),
        (("champion", "--track", "train-000"), "none comes with the package for 'train-000'"),
        (("generalist", "--track", "track-01"), "--track track-01: only a champion has a track to choose"),
    ],
)
def test_a_champion_of_a_track_that_has_none_is_refused(hotlap, tmp_path, arguments, words):
    answer = hotlap("export", *arguments, "--format", "onnx", "--out", tmp_path / "x.onnx")
    assert answer.code == 2
    assert words in answer.err
    assert not (tmp_path / "x.onnx").exists()


def test_the_champion_is_exported(hotlap, tmp_path):
    answer = hotlap("export", "champion", "--track", "track-02", "--format", "onnx", "--out", tmp_path / "x.onnx")
    assert (answer.code, (tmp_path / "x.onnx").is_file()) == (0, True)
    assert "observation road" in answer.out
