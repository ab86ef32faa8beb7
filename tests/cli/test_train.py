"""`hotlap train`: files, output, exit codes, and refusals that leave no files."""

import json
import logging
import os
import re
import signal
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from cli.trained_runs import DEFAULT, everything_under, recipe, total_steps
from hotlap.errors import OutputFileError
from hotlap.models.model_file import read_model
from hotlap.runs.recipe import find_recipe, resolve_config
from hotlap.runs.run_config import load_config
from hotlap.runs.run_folder import RunFolder
from hotlap.training import trainer as trainer_module
from hotlap.training.checkpoint import CheckpointManager
from tiny_runs import LUNAR, assert_same_run, tiny_config

pytestmark = pytest.mark.usefixtures("here")


# --- train ---


def test_the_folder_is_named_after_algorithm_and_seed_and_holds_all_files(hotlap, unevaluated):
    name = recipe("a2c", evaluation={"interval": 50, "episodes": 1})
    assert hotlap("train", "--recipe", name, "--seed", 7).code == 0
    folder = Path("results") / "experiments" / "a2c_seed7"
    assert sorted(path.name for path in folder.iterdir()) == [
        "a2c_seed7_best.zip", "a2c_seed7_metrics.json", "a2c_seed7_model.zip",
        "a2c_seed7_results.json", "checkpoint_40.zip", "checkpoint_80.zip", "config.toml", "tensorboard",
    ]  # fmt: skip


def test_options_override_the_recipe_and_are_saved_and_a_run_name_may_be_a_path(hotlap, unevaluated):
    options = {"seed": 3, "steps": 40, "num-envs": 2, "track": "track-02", "checkpoint-interval": 17, "algo": "ppo"}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    assert hotlap("train", "--recipe", recipe(), *arguments, "--device", "cpu", "--run-name", "./some/where").code == 0
    config = load_config(Path("some/where/config.toml"))
    assert (config.seed, config.steps, config.num_envs, config.racer.track) == (3, 40, 2, "track-02")
    assert (config.checkpoint.interval, config.algo, config.device) == (17, "ppo", "cpu")
    assert config.ppo.n_steps == 32


def test_the_resolved_settings_are_shown_and_nothing_is_trained(hotlap, tmp_path):
    answer = hotlap("train", "--recipe", "racer-ppo-champion", "--track", "track-02", "--steps", 7, "--show")
    shown = tmp_path / "shown.toml"
    shown.write_text(answer.out)
    assert load_config(shown) == resolve_config("racer-ppo-champion", {"racer.track": "track-02", "steps": 7})
    assert (answer.code, answer.err) == (0, "")
    assert not Path("results").exists()


def test_a_run_can_start_from_a_driver_of_the_package(hotlap, unevaluated, refused):
    start = ("train", "--start-model", "generalist", "--track", "track-02", "--steps", 128, "--num-envs", 2)
    assert hotlap(*start, "--run-name", "./tuned").code == 0
    config = load_config(Path("tuned/config.toml"))
    assert (config.start_model, config.racer.track, config.racer.observation) == ("generalist", "track-02", "road")
    assert config.policy.net_arch == read_model(Path("tuned/ppo_seed42_model.zip")).card.policy.net_arch == (256, 256)
    line = refused("train", "--start-model", "nowhere.zip")
    assert "driver 'nowhere.zip' is not known" in line
    assert "is of ppo. Leave one out" in refused("train", "--start-model", "generalist", "--algo", "sac")
    line = refused("train", "--start-model", "generalist", "--recipe", "racer-sac")
    assert "--start-model generalist, ppo: the recipe racer-sac is for sac" in line
    assert [path.name for path in Path().iterdir()] == ["tuned"]


def test_any_gymnasium_environment_trains_without_a_recipe(hotlap, unevaluated):
    answer = hotlap("train", "--env", "CartPole-v1", "--steps", 10, "--json")
    [line] = answer.out.splitlines()
    written = json.loads((DEFAULT / "ppo_seed42_results.json").read_text())
    assert json.loads(line) == {"run": str(DEFAULT), **written}
    metadata = written["experiment_results"]["metadata"]
    assert (metadata["environment"], metadata["algorithm"], metadata["total_timesteps"]) == ("CartPole-v1", "ppo", 10)


def test_the_summary_shows_the_return_and_progress_is_plain_lines(hotlap):
    answer = hotlap("train", "--recipe", recipe(env="CartPole-v1"))
    assert answer.out.startswith("ppo_seed42: 100 steps in ")
    lines = answer.out.splitlines()
    assert lines[1].strip() == "return over 1 deterministic episode not used for selection:"
    assert lines[2].split() == ["model", "step", "return", "std", "length", "file"]
    assert [line.split()[0] for line in lines[3:]] == ["final"]
    assert lines[3].endswith(str(DEFAULT / "ppo_seed42_model.zip"))
    lines = answer.err.splitlines()
    assert lines[:2] == [f"run: {DEFAULT}", f"watch it: tensorboard --logdir {DEFAULT}"]
    assert lines[2] == "checkpoints: every 40 steps, keeping all"
    assert (lines[3].startswith("0/100 steps"), lines[-1].startswith("100/100 steps")) == (True, True)
    assert all(letter.isprintable() or letter == "\n" for letter in answer.err + answer.out)


def test_the_summary_compares_the_racer_with_the_casual_driver_and_the_optimum(hotlap, monkeypatch):
    monkeypatch.setattr("hotlap.cli.run_summary.CASUAL_EPISODES", 1)
    lines = hotlap("train", "--recipe", recipe(steps=40)).out.splitlines()
    assert lines[1].split() == [
        "on", "track-01", "flying", "lap", "gap", "to", "optimal", "laps", "completed", "clean"
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[2:5]] == ["the", "casual", "optimum"]
    assert "100 %" in lines[3]


def test_a_run_too_short_for_a_lap_says_so_and_how_to_go_on(hotlap, monkeypatch):
    monkeypatch.setattr("hotlap.cli.run_summary.CASUAL_EPISODES", 1)
    last = hotlap("train", "--recipe", recipe(steps=40)).out.splitlines()[-1].strip()
    assert last == (
        "The AI has not completed a lap yet: it had 40 steps, and the recipe racer-ppo trains for 16,000,000. "
        f"Train on: hotlap resume {DEFAULT} --steps 16000000"
    )
    monkeypatch.setattr("hotlap.runs.recipe.usual_steps", lambda _: None)
    last = hotlap("resume", DEFAULT, "--steps", 50).out.splitlines()[-1].strip()
    assert last == f"The AI has not completed a lap yet. Train on: hotlap resume {DEFAULT} --steps 100"


def test_quiet_prints_nothing_at_all(hotlap, unevaluated):
    answer = hotlap("train", "--recipe", recipe(ppo={"batch_size": 7}), "-q")  # the library would warn about 7
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert hotlap("resume", "ppo_seed42", "-q").err == ""
    assert hotlap("resume", "ppo_seed42", "-q", "--steps", 120).err == ""
    assert len(hotlap("train", "--recipe", recipe(), "-q", "--json", "--overwrite").out.splitlines()) == 1


def test_a_librarys_warning_becomes_one_line_without_colours(hotlap, unevaluated, monkeypatch):
    make = trainer_module.build_learner

    def warning(*arguments):
        warnings.warn("\x1b[33mWARN: mind\nthe gap\x1b[0m", UserWarning, stacklevel=1)
        return make(*arguments)

    monkeypatch.setattr(trainer_module, "build_learner", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        answer = hotlap("train", "--recipe", recipe())
    assert "hotlap: WARN: mind the gap\n" in answer.err
    assert "UserWarning" not in answer.err


def test_verbose_prints_more_log_messages(hotlap, unevaluated):
    lander = ("train", "--algo", "sac", "--env", LUNAR, "--steps", 10, "--num-envs", 1)
    assert "env_args.continuous is set to true" in hotlap(*lander, "-v").err
    assert "continuous" not in hotlap(*lander, "--overwrite").err
    assert logging.getLogger("hotlap").handlers == []


def test_verbose_logs_progress_at_info_and_metrics_at_debug(hotlap, unevaluated):
    lines = hotlap("train", "--recipe", recipe(evaluation={"interval": 50, "episodes": 1}), "-v").err.splitlines()
    progress = [line for line in lines if "/100 steps" in line]
    assert progress[0].startswith("hotlap: 0/100 steps")
    assert progress[-1].startswith("hotlap: 100/100 steps")
    assert any(line.startswith("hotlap: step ") and "racer/episodes_this_rollout" in line for line in lines)


def test_the_table_shows_the_final_and_the_best_model_as_the_results_do(hotlap):
    name = recipe(env="CartPole-v1", evaluation={"interval": 30, "episodes": 2, "final_episodes": 3})
    lines = hotlap("train", "--recipe", name).out.splitlines()
    found = json.loads((DEFAULT / "ppo_seed42_results.json").read_text())["experiment_results"]
    assert lines[1].strip() == "return over 3 deterministic episodes not used for selection:"
    for line, figures, step, file in (
        (lines[3], found["metrics"], 100, "ppo_seed42_model.zip"),
        (lines[4], found["best"], found["best"]["step"], "ppo_seed42_best.zip"),
    ):
        names = ("final_reward_mean", "final_reward_std", "episode_length_mean")
        assert line.split()[1:] == [str(step), *(f"{figures[name]:.1f}" for name in names), str(DEFAULT / file)]
    assert [line.split()[0] for line in lines[3:]] == ["final", "best"]


@pytest.mark.parametrize(
    ("options", "steps", "words"),
    [
        ([], [90], "every 30 steps, keeping the newest 1"),
        (["--checkpoint-interval", 20], [20, 40, 60, 80, 100], "every 20 steps, keeping all"),
        (["--checkpoint-interval", 20, "--keep", 2], [80, 100], "every 20 steps, keeping the newest 2"),
        (["--keep", 0], [30, 60, 90], "every 30 steps, keeping all"),
        (["--checkpoint-interval", 0], [], "only when stopped"),
    ],
)
def test_as_many_checkpoints_are_kept_as_is_said_at_the_start(hotlap, unevaluated, options, steps, words):
    answer = hotlap("train", "--recipe", recipe(checkpoint={"interval": 30, "keep": 1}), *options)
    assert f"checkpoints: {words}" in answer.err.splitlines()
    assert CheckpointManager(DEFAULT).steps() == steps


def test_an_environment_of_a_module_needs_the_users_word(hotlap, refused, here, unevaluated, monkeypatch):
    text = "import gymnasium\ngymnasium.register('mine/Cart-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    (here / "my_environments.py").write_text(text)
    monkeypatch.syspath_prepend(here)
    options = ("--env", "my_environments:mine/Cart-v0", "--steps", 10)
    assert "add --allow-import my_environments" in refused("train", *options)
    answer = hotlap("train", *options, "--allow-import", "my_environments")
    assert (answer.code, "imported my_environments, as --allow-import says" in answer.err) == (0, True)
    assert load_config(DEFAULT / "config.toml").env == "mine/Cart-v0"
    answer = hotlap("resume", DEFAULT, "--steps", 20, "--allow-import", "my_environments")
    assert (answer.code, "imported my_environments" in answer.err) == (0, True)


# --- existing runs ---


def test_an_existing_run_is_not_replaced_without_overwrite_nor_by_bad_settings(hotlap, refused, unevaluated):
    hotlap("train", "--recipe", recipe())
    before = everything_under(DEFAULT)
    line = refused("train", "--recipe", recipe(steps=50))
    assert f"{DEFAULT}: holds a run already" in line
    assert "--overwrite" in line
    refused("train", "--recipe", recipe(racer={"track": "nowhere"}), "--overwrite")
    assert everything_under(DEFAULT) == before


def test_overwrite_removes_the_runs_files_only(hotlap, unevaluated):
    hotlap("train", "--recipe", recipe())
    foreign = [DEFAULT / "notes.txt", DEFAULT / "tensorboard" / "mine", DEFAULT / "checkpoint_x.zip"]
    for path in foreign:
        path.write_text("mine")
    old = [DEFAULT / "report" / name for name in ("report.html", "learning.png")]
    old[0].parent.mkdir()
    for path in old:
        path.write_text("of the previous run")
    figures = hotlap("train", "--recipe", recipe(steps=30), "--overwrite", "--json").figures
    assert total_steps(figures) == 30
    assert not any(path.exists() for path in old)
    assert [path.read_text() for path in foreign] == ["mine"] * 3
    assert CheckpointManager(DEFAULT).steps() == []
    assert len(list((DEFAULT / "tensorboard").glob("events*"))) == 1


def test_continue_resumes_an_unfinished_run_and_keeps_a_finished_one(hotlap, unevaluated, signalled):
    train = ("train", "--recipe", recipe(), "--continue")
    signalled(50, signal.SIGINT)
    assert hotlap(*train).code == 130
    answer = hotlap(*train, "--json")
    assert f"{DEFAULT}: is not finished. It is resumed with its own settings." in answer.err
    assert "resuming from step 32" in answer.err
    before = everything_under(DEFAULT)
    answer = hotlap(*train)
    [kept] = DEFAULT.parent.glob("ppo_seed42-*")
    assert re.fullmatch(r"ppo_seed42-\d{4}-\d\d-\d\dT\d{6}", kept.name)
    assert f"{DEFAULT}: is finished; it is kept as {kept}, and a new run starts." in answer.err
    assert everything_under(kept) == before
    assert_same_run(DEFAULT, kept, tiny_config())
    hotlap(*train)
    assert len(list(DEFAULT.parent.glob("ppo_seed42-*"))) == 2


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "NoSuch-v0"], "'NoSuch-v0' is not known to Gymnasium"),
        (["--env", "CartPole-v1", "--track", "track-01"], "--track: CartPole-v1 has no tracks"),
        (["--env", "CartPole-v1", "--algo", "sac"], "SAC needs continuous actions"),
        (["--algo", "dqn"], "algo must be one of"),
        (["--algo", "sac", "--recipe", "racer-ppo"], "--algo sac: the recipe racer-ppo is for ppo"),
        (["--recipe", "nothing"], "recipe 'nothing' is not known"),
        (["--recipe", "broken.toml"], "broken.toml: not valid TOML"),
        (["--recipe", "unknown.toml"], "unknown key 'learning'"),
        (["--recipe", "unmakeable.toml"], "environment 'CartPole-v1' cannot be made with {'wings': 2}"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
        (["--num-envs", "0"], "num_envs must be from 1"),
        (["--steps", "0"], "steps must be from 1"),
        (["--steps", "1e6"], "'--steps'"),
        (["--seed", "-1"], "seed must be from 0"),
        (["--checkpoint-interval", "-1"], "interval must be 0 or more"),
        (["--device", "tpu"], "--device must be cpu, cuda or auto, got 'tpu'"),
        (["--run-name", ""], "'' is not a valid name for a run"),
        (["--overwrite", "--continue"], "--overwrite and --continue: one deletes an existing run"),
        (["--run-name", ".."], "is not a valid name for a run"),
        (["--run-name", "file/run"], "file/run: cannot hold a run (Not a directory)"),
        (["--run-name", "./file"], "file: is a file; a run needs a folder"),
        (["--bridge-url", "ws://127.0.0.1:9"], "no bridge there"),
        (["--bridge-url", "ws://127.0.0.1:9", "--env", "CartPole-v1"], "Leave one of them out"),
        (
            ["--bridge-url", "ws://127.0.0.1:9", "--recipe", "racer-ppo-generalist"],
            "device: cars behind a bridge are trained on the CPU",
        ),
        (["--recipe", "bridge.toml"], "a recipe cannot name a bridge. Give its URL with --bridge-url."),
        (["--recipe", "bridge.toml", "--env", "hotlap/RemoteRacer-v0"], "a recipe cannot name a bridge"),
    ],
)
def test_bad_input_is_refused_in_one_line_and_leaves_no_files(here, refused, arguments, words):
    unmakeable = 'env = "CartPole-v1"\n[env_args]\nwings = 2\n'
    bridge = 'env = "hotlap/RemoteRacer-v0"\n[env_args]\nbridge_url = "ws://127.0.0.1:9"\n'
    texts = {
        "bridge.toml": bridge,
        "file": "",
        "broken.toml": "algo = ",
        "unknown.toml": "learning = 1",
        "unmakeable.toml": unmakeable,
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    before = everything_under(here)
    small = [] if {"--steps", "--recipe"} & set(arguments) else ["--steps", "10"]
    assert words in refused("train", *arguments, *small)
    assert everything_under(here) == before
    assert not Path("results").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_refused(refused):
    assert "--device cuda: torch finds no NVIDIA GPU" in refused("train", "--device", "cuda", "--steps", 10)
    assert not Path("results").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(refused, here):
    (here / "locked").mkdir(mode=0o500)
    assert "Permission denied" in refused("train", "--steps", 10, "--run-name", "locked/run")


def test_a_disk_too_full_for_the_configuration_is_refused_in_one_line(refused, monkeypatch):
    monkeypatch.setattr(RunFolder, "write_config", Mock(side_effect=OutputFileError("No space left on device.")))
    assert "No space left on device" in refused("train", "--recipe", recipe())


# --- behind a bridge ---


def test_a_model_trained_behind_a_bridge_drives_in_process_too(hotlap, bridge_server, signalled):
    Path("mine.toml").write_text("[ppo]\nn_steps = 32\nbatch_size = 32\n[evaluation]\nfinal_episodes = 1\n")
    signalled(100, signal.SIGINT)
    options = ("--num-envs", 2, "--steps", 192, "--track", "track-02", "--recipe", "mine.toml")
    assert hotlap("train", "--bridge-url", bridge_server.url, *options).code == 130
    assert "--bridge-url: this run trains on the cars of a bridge" in hotlap("resume", DEFAULT).err
    answer = hotlap("resume", DEFAULT, "--bridge-url", bridge_server.url, "--json")
    assert "episodes restart" not in answer.err
    found = answer.figures["experiment_results"]
    assert (found["metadata"]["environment"], total_steps(answer.figures)) == ("hotlap/RemoteRacer-v0", 192)
    assert found["evaluation"]["track"] == "track-02"
    card = read_model(DEFAULT / "ppo_seed42_model.zip").card
    assert (card.is_racer, card.track) == (True, "track-02")
    assert hotlap("evaluate", DEFAULT, "--episodes", 1, "--json").figures["track"] == "track-02"


def test_a_recipe_trains_over_the_bridge_and_gives_the_local_weights(hotlap, bridge_server):
    Path("mine.toml").write_text(Path(find_recipe("racer-ppo")).read_text().replace("episodes = 1000", "episodes = 1"))
    options = ("--recipe", "mine.toml", "--steps", 1024, "--num-envs", 16, "--quiet")
    assert hotlap("train", *options, "--run-name", "here").code == 0
    assert hotlap("train", *options, "--run-name", "there", "--bridge-url", bridge_server.url).code == 0
    here, there = (read_model(Path("results/experiments", name, "ppo_seed42_model.zip")) for name in ("here", "there"))
    assert here.weights.keys() == there.weights.keys()
    assert all(here.weights[name].tobytes() == there.weights[name].tobytes() for name in here.weights)
    assert bridge_server.url not in Path("results/experiments/there/config.toml").read_text()
