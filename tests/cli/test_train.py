"""`hotlap train` and `hotlap resume`: files, figures, exit codes, signals, and refusals that leave nothing behind."""

import json
import logging
import os
import signal
import warnings
from pathlib import Path

import pytest
import torch

from hotlap.errors import OutputFileError
from hotlap.models.model_file import read_model
from hotlap.training import trainer as trainer_module
from hotlap.training.callbacks.checkpointing import CheckpointCallback
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.run_config import load_config
from hotlap.training.run_files.run_folder import RunFolder
from tiny_runs import LUNAR, assert_same_run, skip_evaluation, tiny_config

DEFAULT = Path("results") / "experiments" / "ppo_seed42"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Every command runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def recipe(here):
    """Writes a tiny recipe and gives its name."""

    def write(*arguments, **changes):
        Path("tiny.toml").write_text(tiny_config(*arguments, **changes).to_toml())
        return "tiny.toml"

    return write


@pytest.fixture
def unjudged(monkeypatch):
    """Evaluations, and the comparison with the casual driver, cost nothing."""
    skip_evaluation(monkeypatch)
    monkeypatch.setattr("hotlap.cli.train._tell_laps", lambda *_: None)


def everything_under(path):
    return {file.relative_to(path): file.read_bytes() for file in Path(path).rglob("*") if file.is_file()}


# --- train ---


def test_a_run_lies_under_its_algorithm_and_seed_with_all_its_files(hotlap, recipe, unjudged):
    answer = hotlap("train", "--recipe", recipe("a2c", evaluation={"interval": 50, "episodes": 1}), "--seed", 7)
    assert answer.code == 0
    folder = Path("results") / "experiments" / "a2c_seed7"
    assert sorted(path.name for path in folder.iterdir()) == [
        "a2c_seed7_best.zip", "a2c_seed7_metrics.json", "a2c_seed7_metrics.jsonl", "a2c_seed7_model.zip",
        "a2c_seed7_results.json", "checkpoint_40.zip", "checkpoint_80.zip", "config.toml", "tensorboard",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "place"), [("mine", "results/experiments/mine"), ("./some/where", "some/where")])
def test_a_run_can_be_named_or_put_elsewhere(hotlap, recipe, unjudged, name, place):
    assert hotlap("train", "--recipe", recipe(), "--run-name", name).code == 0
    assert (Path(place) / "ppo_seed42_results.json").is_file()


def test_options_go_over_the_recipe_and_into_the_saved_configuration(hotlap, recipe, unjudged):
    options = {"seed": 3, "steps": 40, "num-envs": 2, "track": "track-02", "checkpoint-interval": 17, "algo": "ppo"}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    assert hotlap("train", "--recipe", recipe(), *arguments, "--device", "cpu").code == 0
    config = load_config(Path("results/experiments/ppo_seed3/config.toml"))
    assert (config.seed, config.steps, config.num_envs, config.racer.track) == (3, 40, 2, "track-02")
    assert (config.checkpoint.interval, config.algo, config.device) == (17, "ppo", "cpu")
    assert config.ppo.n_steps == 32


def test_any_gymnasium_environment_trains_without_a_recipe(hotlap, unjudged):
    answer = hotlap("train", "--env", "CartPole-v1", "--steps", 10, "--json")
    metadata = answer.figures["experiment_results"]["metadata"]
    assert (metadata["environment"], metadata["algorithm"], metadata["total_timesteps"]) == ("CartPole-v1", "ppo", 10)


def test_people_see_the_return_and_where_the_model_lies(hotlap, recipe):
    answer = hotlap("train", "--recipe", recipe(env="CartPole-v1"))
    assert answer.out.startswith("ppo_seed42: 100 steps in ")
    assert "return over 1 deterministic episodes: " in answer.out
    assert f"model: {DEFAULT / 'ppo_seed42_model.zip'}" in answer.out
    assert f"tensorboard --logdir {DEFAULT}" in answer.err


def test_people_see_the_racer_beside_the_casual_driver_and_the_optimum(hotlap, recipe, monkeypatch):
    monkeypatch.setattr("hotlap.cli.train.CASUAL_EPISODES", 1)
    lines = hotlap("train", "--recipe", recipe(steps=40)).out.splitlines()
    assert lines[1].split() == [
        "on", "track-01", "flying", "lap", "gap", "to", "optimal", "laps", "completed", "clean"
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[2:5]] == ["the", "casual", "optimum"]
    assert "100 %" in lines[3]


def test_json_is_the_results_document_on_the_only_line_of_stdout(hotlap, recipe, unjudged):
    answer = hotlap("train", "--recipe", recipe(), "--json")
    assert answer.code == 0
    [line] = answer.out.splitlines()
    written = json.loads((DEFAULT / "ppo_seed42_results.json").read_text())
    assert json.loads(line) == {"run": str(DEFAULT), **written}


def test_quiet_prints_nothing_at_all(hotlap, recipe, unjudged):
    answer = hotlap("train", "--recipe", recipe(ppo={"batch_size": 7}), "-q")  # the library would warn about 7
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert hotlap("resume", "ppo_seed42", "-q").err == ""
    assert hotlap("resume", "ppo_seed42", "-q", "--steps", 120).err == ""
    assert len(hotlap("train", "--recipe", recipe(), "-q", "--json", "--overwrite").out.splitlines()) == 1


def test_where_there_is_no_terminal_progress_is_plain_lines(hotlap, recipe, unjudged):
    answer = hotlap("train", "--recipe", recipe(env="CartPole-v1"))
    lines = answer.err.splitlines()
    assert lines[1].startswith("0/100 steps")
    assert lines[-1].startswith("100/100 steps")
    assert all(letter.isprintable() or letter == "\n" for letter in answer.err + answer.out)


def test_a_librarys_warning_becomes_one_line_without_colours(hotlap, recipe, unjudged, monkeypatch):
    make = trainer_module.Worlds

    def warning(config):
        warnings.warn("\x1b[33mWARN: mind\nthe gap\x1b[0m", UserWarning, stacklevel=1)
        return make(config)

    monkeypatch.setattr(trainer_module, "Worlds", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        answer = hotlap("train", "--recipe", recipe())
    assert "hotlap: WARN: mind the gap\n" in answer.err
    assert "UserWarning" not in answer.err


def test_verbose_says_more(hotlap, unjudged, recipe):
    more = hotlap("train", "--algo", "sac", "--env", LUNAR, "--steps", 10, "--num-envs", 1, "-v")
    assert "env_args.continuous is set to true" in more.err
    less = hotlap("train", "--algo", "sac", "--env", LUNAR, "--steps", 10, "--num-envs", 1, "--overwrite")
    assert "continuous" not in less.err
    assert logging.getLogger("hotlap").handlers == []


# --- a run that is there already ---


def test_an_existing_run_is_refused_and_left_as_it_is(hotlap, refused, recipe, unjudged):
    hotlap("train", "--recipe", recipe())
    before = everything_under(DEFAULT)
    line = refused("train", "--recipe", recipe(steps=50))
    assert f"{DEFAULT}: holds a run already" in line
    assert "--overwrite" in line
    assert everything_under(DEFAULT) == before


def test_overwriting_removes_the_run_and_nothing_else(hotlap, recipe, unjudged):
    hotlap("train", "--recipe", recipe())
    foreign = [DEFAULT / "notes.txt", DEFAULT / "tensorboard" / "mine", DEFAULT / "checkpoint_x.zip"]
    for path in foreign:
        path.write_text("mine")
    old = [DEFAULT / "report" / name for name in ("report.html", "learning.png")]
    old[0].parent.mkdir()
    for path in old:
        path.write_text("of the run before")
    assert hotlap("train", "--recipe", recipe(steps=30), "--overwrite").code == 0
    assert not any(path.exists() for path in old)
    assert [path.read_text() for path in foreign] == ["mine"] * 3
    assert CheckpointManager(DEFAULT).steps() == []
    assert len(list((DEFAULT / "tensorboard").glob("events*"))) == 1
    assert json.loads((DEFAULT / "ppo_seed42_results.json").read_text())["experiment_results"]["metadata"][
        "total_timesteps"
    ] == 30  # fmt: skip


def test_a_new_run_that_cannot_begin_leaves_the_old_one_alone(hotlap, refused, recipe, unjudged):
    hotlap("train", "--recipe", recipe())
    before = everything_under(DEFAULT)
    refused("train", "--recipe", recipe(racer={"track": "nowhere"}), "--overwrite")
    assert everything_under(DEFAULT) == before


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "NoSuch-v0"], "'NoSuch-v0' is not known to Gymnasium"),
        (["--env", "nothing:NoSuch-v0"], "NoSuch-v0"),
        (["--env", "CartPole-v1", "--track", "track-01"], "--track: CartPole-v1 has none"),
        (["--env", "CartPole-v1", "--algo", "sac"], "SAC needs continuous actions"),
        (["--algo", "dqn"], "algo must be one of"),
        (["--algo", "sac", "--recipe", "racer-ppo"], "--algo sac: the recipe racer-ppo is for ppo"),
        (["--recipe", "nothing"], "recipe 'nothing' is not known"),
        (["--recipe", "nothing.toml"], "nothing.toml: no such settings file"),
        (["--recipe", "broken.toml"], "broken.toml: not valid TOML"),
        (["--recipe", "unknown.toml"], "unknown key 'learning'"),
        (["--recipe", "unmakeable.toml"], "environment 'CartPole-v1' cannot be made with {'wings': 2}"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
        (["--num-envs", "0"], "num_envs must be from 1"),
        (["--num-envs", "-2"], "num_envs must be from 1"),
        (["--num-envs", "many"], "'--num-envs'"),
        (["--steps", "0"], "steps must be from 1"),
        (["--steps", "-5"], "steps must be from 1"),
        (["--steps", "1e6"], "'--steps'"),
        (["--seed", "-1"], "seed must be from 0"),
        (["--checkpoint-interval", "-1"], "interval must be zero or more"),
        (["--device", "tpu"], "device must be one of 'cpu', 'cuda', got 'tpu'"),
        (["--run-name", ".."], "is no name for a run"),
        (["--run-name", "file/run"], "file/run: cannot hold a run (Not a directory)"),
        (["--run-name", "./file"], "file: is a file; a run needs a folder"),
        (["--bridge-url", "ws://127.0.0.1:9"], "no bridge there"),
        (["--bridge-url", "nonsense"], "nonsense"),
        (["--bridge-url", "ws://127.0.0.1:9", "--env", "CartPole-v1"], "Leave one of them out"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_nothing_behind(here, refused, arguments, words):
    Path("file").touch()
    Path("broken.toml").write_text("algo = ")
    Path("unknown.toml").write_text("learning = 1")
    Path("unmakeable.toml").write_text('env = "CartPole-v1"\n[env_args]\nwings = 2\n')
    before = everything_under(here)
    small = [] if {"--steps", "--recipe"} & set(arguments) else ["--steps", "10"]
    assert words in refused("train", *arguments, *small)
    assert everything_under(here) == before
    assert not Path("results").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused(refused):
    assert "--device cuda: torch finds no CUDA here" in refused("train", "--device", "cuda", "--steps", 10)
    assert not Path("results").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_refused(refused, here):
    (here / "locked").mkdir(mode=0o500)
    assert "Permission denied" in refused("train", "--steps", 10, "--run-name", "locked/run")


def test_a_disk_that_takes_no_configuration_is_refused_in_one_line(refused, recipe, monkeypatch):
    def fail(self, config):
        raise OutputFileError("config.toml: cannot be written (No space left on device). Check the room left.")

    monkeypatch.setattr(RunFolder, "write_config", fail)
    assert "No space left on device" in refused("train", "--recipe", recipe())
    monkeypatch.undo()


# --- signals ---


@pytest.fixture
def signalled(monkeypatch):
    """Sends this process signals at given steps of the training; what is said at once gathers in the answer."""

    said = []
    monkeypatch.setattr("hotlap.cli.run_monitor.os.write", lambda descriptor, text: said.append((descriptor, text)))

    def at(steps):
        on_step = CheckpointCallback._on_step

        def signalling(self):
            for number in steps.pop(self.num_timesteps, ()):
                signal.raise_signal(number)
            return on_step(self)

        monkeypatch.setattr(CheckpointCallback, "_on_step", signalling)
        return said

    return at


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_saves_and_says_how_to_go_on(hotlap, recipe, unjudged, signalled, number):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    said = signalled({50: [number]})
    answer = hotlap("train", "--recipe", recipe())
    assert (answer.code, answer.out) == (130, "")
    assert said == [(2, b"\nstopping: saving first. Once more stops at once.\n")]
    assert answer.err.splitlines()[-1] == f"stopped and saved at step 50. Go on: hotlap resume {DEFAULT}"
    assert CheckpointManager(DEFAULT).steps() == [40, 50]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    hotlap("train", "--recipe", recipe(), "--run-name", "whole")
    answer = hotlap("resume", "ppo_seed42")
    assert answer.code == 0
    assert f"{DEFAULT}: going on from step 32." in answer.err
    assert_same_run(DEFAULT, DEFAULT.parent / "whole", tiny_config())


def test_the_second_signal_stops_at_once(hotlap, recipe, unjudged, signalled):
    signalled({50: [signal.SIGINT, signal.SIGINT]})
    answer = hotlap("train", "--recipe", recipe())
    assert (answer.code, answer.out) == (130, "")
    assert "Traceback" not in answer.err
    assert CheckpointManager(DEFAULT).steps() == [40]
    assert hotlap("resume", "ppo_seed42").code == 0


def test_after_the_first_signal_either_of_them_is_the_second(hotlap, recipe, unjudged, signalled, monkeypatch):
    handlers = []
    monkeypatch.setattr("hotlap.training.trainer.Trainer.stop", lambda self: handlers.append(
        (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    ))  # fmt: skip
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    signalled({50: [signal.SIGTERM]})
    hotlap("train", "--recipe", recipe())
    assert handlers == [before]


def test_a_quiet_run_stops_quietly(hotlap, recipe, unjudged, signalled):
    said = signalled({50: [signal.SIGINT]})
    answer = hotlap("train", "--recipe", recipe(), "-q")
    assert (answer.code, answer.out, answer.err, said) == (130, "", "", [])


def test_a_run_stopped_before_its_first_rollout_goes_on_too(hotlap, recipe, unjudged, signalled):
    signalled({1: [signal.SIGINT]})
    assert hotlap("train", "--recipe", recipe()).code == 130
    assert hotlap("resume", DEFAULT).code == 0


def test_a_stop_that_could_not_be_saved_is_an_error(hotlap, recipe, unjudged, signalled, monkeypatch):
    def fail(self, snapshot, card, step):
        raise OutputFileError("checkpoint: cannot be written (No space left on device).")

    monkeypatch.setattr(CheckpointManager, "save", fail)
    signalled({50: [signal.SIGINT]})
    answer = hotlap("train", "--recipe", recipe())
    assert answer.code == 2
    assert "stopped at step 50 and not saved" in answer.err.splitlines()[-1]


# --- resume ---


def test_a_finished_run_says_so(hotlap, recipe, unjudged):
    hotlap("train", "--recipe", recipe())
    before = everything_under(DEFAULT)
    for more in ([], ["--steps", 100], ["--steps", 50]):
        answer = hotlap("resume", DEFAULT, *more)
        assert (answer.code, answer.out) == (0, "")
        assert f"{DEFAULT}: is finished (100 steps)" in answer.err
    assert hotlap("resume", DEFAULT, "--json").figures["experiment_results"]["metadata"]["total_timesteps"] == 100
    assert everything_under(DEFAULT) == before


def test_a_finished_run_can_be_made_longer(hotlap, recipe, unjudged):
    hotlap("train", "--recipe", recipe(steps=60))
    answer = hotlap("resume", "ppo_seed42", "--steps", 100, "--json")
    assert answer.code == 0
    assert answer.figures["experiment_results"]["metadata"]["total_timesteps"] == 100
    assert load_config(DEFAULT / "config.toml").steps == 100
    hotlap("train", "--recipe", recipe(), "--run-name", "whole")
    assert_same_run(DEFAULT, DEFAULT.parent / "whole", tiny_config())


def test_a_longer_run_that_was_stopped_is_not_taken_for_finished(hotlap, recipe, unjudged, signalled):
    hotlap("train", "--recipe", recipe(steps=60))
    signalled({70: [signal.SIGINT]})
    assert hotlap("resume", "ppo_seed42", "--steps", 100).code == 130
    answer = hotlap("resume", "ppo_seed42", "--json")
    assert answer.figures["experiment_results"]["metadata"]["total_timesteps"] == 100


def test_without_a_checkpoint_it_starts_over_and_says_so(hotlap, recipe, unjudged):
    hotlap("train", "--recipe", recipe(checkpoint={"interval": 0}))
    (DEFAULT / "ppo_seed42_results.json").unlink()
    answer = hotlap("resume", "ppo_seed42")
    assert answer.code == 0
    assert "going on from the beginning: there is no whole checkpoint" in answer.err
    assert (DEFAULT / "ppo_seed42_results.json").is_file()


def test_a_run_cannot_be_made_shorter_than_it_is(hotlap, refused, recipe, unjudged, signalled):
    signalled({70: [signal.SIGINT]})
    hotlap("train", "--recipe", recipe())
    assert "--steps 50: the run is past that, at step 64" in refused("resume", DEFAULT, "--steps", 50)
    assert load_config(DEFAULT / "config.toml").steps == 100


def test_a_run_that_cannot_be_gone_on_with_keeps_what_it_has(hotlap, refused, recipe, unjudged):
    hotlap("train", "--recipe", recipe())
    config = DEFAULT / "config.toml"
    config.write_text(config.read_text().replace("n_epochs = 2", "n_epochs = 3"))
    before = everything_under(DEFAULT)
    line = refused("resume", DEFAULT, "--steps", 150)
    assert "was written under another configuration" in line
    assert everything_under(DEFAULT) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "nothing: no run there (no config.toml)"),
        ([""], "is no name for a run"),
        (["run", "--steps", "0"], "steps must be from 1"),
        (["run", "--steps", "-3"], "steps must be from 1"),
        (["run", "--steps", "x"], "'--steps'"),
        (["broken"], "config.toml: not valid TOML"),
        ([], "Missing argument 'run'"),
    ],
)
def test_what_cannot_be_resumed_is_refused_in_one_line(refused, arguments, words):
    for name, text in (("run", tiny_config().to_toml()), ("broken", "algo = ")):
        folder = Path("results") / "experiments" / name
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)
    assert words in refused("resume", *arguments)


# --- behind a bridge ---


def test_cars_behind_a_bridge_are_trained_on_and_the_model_drives_cars_anywhere(hotlap, bridge_server, signalled):
    Path("mine.toml").write_text("[ppo]\nn_steps = 32\nbatch_size = 32\n[evaluation]\nfinal_episodes = 1\n")
    signalled({100: [signal.SIGINT]})
    options = ("--num-envs", 2, "--steps", 192, "--track", "track-02", "--recipe", "mine.toml")
    assert hotlap("train", "--bridge-url", bridge_server.url, *options).code == 130
    answer = hotlap("resume", DEFAULT, "--json")
    assert "their episodes start anew" in answer.err
    assert answer.figures["experiment_results"]["metadata"]["environment"] == "hotlap/RemoteRacer-v0"
    assert answer.figures["experiment_results"]["metadata"]["total_timesteps"] == 192
    assert answer.figures["experiment_results"]["evaluation"]["track"] == "track-02"
    card = read_model(DEFAULT / "ppo_seed42_model.zip").card
    assert (card.is_racer, card.track) == (True, "track-02")
    assert hotlap("evaluate", DEFAULT, "--episodes", 1, "--json").figures["track"] == "track-02"
