"""A run that was stopped or killed and gone on with ends with the bits of one that never was; so does a longer one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from hotlap.errors import ModelError, StateError
from hotlap.models.archive import Archive, read_archive, write_archive
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.metrics_collector import read_points
from hotlap.training.policy_evaluation import PolicyEvaluator, PolicyScore
from hotlap.training.run_files.journal import Journal
from hotlap.training.run_files.run_folder import RunFolder
from hotlap.training.trainer import Trainer
from hotlap.training.vec_envs.racer import RacerVecEnv
from tiny_runs import (
    ALGORITHMS,
    LUNAR,
    RACER,
    assert_same_run,
    folder_at,
    metrics,
    read_events,
    skip_evaluation,
    tensors,
    tiny_config,
    train,
)

EVERYWHERE = pytest.mark.parametrize("env", [RACER, LUNAR], ids=["racer", "lunar"])
EVERY_ALGORITHM = pytest.mark.parametrize("algo", ALGORITHMS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Gives the folder of a run that nobody interrupted, trained when first asked for."""
    found = {}

    def get(config):
        name = config.to_toml()
        if name not in found:
            found[name] = tmp_path_factory.mktemp("whole")
            with pytest.MonkeyPatch.context() as patch:
                skip_evaluation(patch)
                train(config, found[name])
        return found[name]

    return get


@pytest.fixture
def unjudged(monkeypatch):
    skip_evaluation(monkeypatch)


# --- seeds ---


@EVERYWHERE
@EVERY_ALGORITHM
def test_a_run_is_a_function_of_its_configuration(tmp_path, algo, env):
    config = tiny_config(algo, env, num_envs=2)
    for name in ("one", "two"):
        train(config, tmp_path / name)
    assert_same_run(tmp_path / "one", tmp_path / "two", config)
    other = tiny_config(algo, env, num_envs=2, seed=43)
    train(other, tmp_path / "other")
    saved, others = (
        tensors(RunFolder(tmp_path / name, one.experiment_id).model)
        for name, one in (("one", config), ("other", other))
    )
    assert all(saved[name] != others[name] for name in saved if name.startswith("policy/") and "weight" in name)


# --- stops and kills ---


@pytest.mark.parametrize("num_envs", [1, 3])
@EVERYWHERE
@EVERY_ALGORITHM
def test_stopped_three_times_and_resumed_it_ends_with_the_same_bits(tmp_path, whole, unjudged, algo, env, num_envs):
    config = tiny_config(algo, env, num_envs)
    reached = [train(config, tmp_path, stop_at=7).step]
    for stop_at in (40, 73):
        reached.append(train(config, tmp_path, stop_at, resume=True).step)
    assert all(7 <= step < 100 for step in reached)
    train(config, tmp_path, resume=True)
    assert_same_run(tmp_path, whole(config), config)
    assert read_events(tmp_path) == read_events(whole(config))


@EVERYWHERE
@EVERY_ALGORITHM
def test_from_each_of_its_checkpoints_it_ends_with_the_same_bits(tmp_path, whole, unjudged, algo, env):
    """As after a kill at any later time: points and events past the checkpoint are there and must go."""
    config = tiny_config(algo, env, num_envs=3)
    steps = CheckpointManager(whole(config)).steps()
    assert steps == [42, 81]
    for step in steps:
        killed = tmp_path / str(step)
        shutil.copytree(whole(config), killed)
        folder = RunFolder(killed, config.experiment_id)
        for path in (folder.results, folder.metrics, folder.model):
            path.unlink()
        for later in (one for one in steps if one > step):
            (killed / f"checkpoint_{later}.zip").unlink()
        with folder.journal.open("ab") as journal:
            journal.write(b'{"timestep": 999, "epi')  # torn in the middle of a write
        (killed / ".checkpoint_99.zip.1-2.partial").write_bytes(b"half")
        assert train(config, killed, resume=True).step == 102
        assert_same_run(killed, whole(config), config)
        assert read_events(killed) == read_events(whole(config))
        assert list(killed.glob("*.partial")) == []


def test_what_was_logged_before_a_checkpoint_is_safe_on_the_disk_with_it(tmp_path, unjudged, monkeypatch):
    """A kill right after it must cost neither events nor points: the run that goes on does not make them again."""
    config = tiny_config(checkpoint={"interval": 32})
    monkeypatch.setattr(Journal.__init__, "__defaults__", (0, 3600.0))  # nothing is written by the clock
    seen = {}

    class Look(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 65:
                seen.update(read_events(tmp_path))
                seen["points"] = len(read_points(tmp_path / "ppo_seed42_metrics.jsonl")[0])
            return True

    Trainer(config, folder_at(tmp_path, config), callbacks=[Look()]).run()
    assert [step for step, _ in seen["rollout/ep_rew_mean"]] == [32, 64]
    assert seen["points"] == 6


def test_every_moment_is_good_for_a_stop(tmp_path, whole, unjudged):
    """PPO's rollouts have 32 steps: at the first, within, at the last, and before the short one at the end."""
    config = tiny_config()
    for stop_at in (1, 20, 31, 32, 33, 96):
        path = tmp_path / str(stop_at)
        outcome = train(config, path, stop_at)
        assert (outcome.results, outcome.step) == (None, stop_at + 1)
        train(config, path, resume=True)
        assert_same_run(path, whole(config), config)


def test_a_lap_done_before_the_stop_counts_for_the_episode_that_ends_after_it(tmp_path, unjudged, monkeypatch):
    """Car 0 is said to finish a lap with the first step of each of its episodes, which have 30."""
    step_wait = RacerVecEnv.step_wait

    def lapping(self):
        obs, rewards, dones, infos = step_wait(self)
        if self._lengths[0] == 1:
            infos[0] = {"lapTime": 30.0, "lapClean": True, "lap": 2, "stepCount": 1}
        elif dones[0]:
            infos[0]["lap"] = 2
        return obs, rewards, dones, infos

    monkeypatch.setattr(RacerVecEnv, "step_wait", lapping)
    config = tiny_config()
    train(config, tmp_path / "whole")
    assert train(config, tmp_path / "stopped", stop_at=40).step == 41
    train(config, tmp_path / "stopped", resume=True)
    expected = read_events(tmp_path / "whole")
    assert [value for _, value in expected["racer/completion_rate"]] == [1.0, 1.0, 1.0]
    assert read_events(tmp_path / "stopped") == expected


@pytest.mark.parametrize("stop_at", [98, 100])
def test_a_stop_shortly_before_the_end_comes_too_late_and_the_run_is_finished(tmp_path, unjudged, stop_at):
    assert train(tiny_config(), tmp_path, stop_at).results is not None


def test_without_a_checkpoint_a_run_starts_over_and_leaves_nothing_of_its_first_attempt(tmp_path, whole, unjudged):
    config = tiny_config()
    shutil.copytree(whole(config), tmp_path / "run")
    for checkpoint in (tmp_path / "run").glob("checkpoint_*.zip"):
        checkpoint.unlink()
    train(config, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", whole(config), config)
    assert read_events(tmp_path / "run") == read_events(whole(config))


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, whole, unjudged, caplog):
    config = tiny_config()
    shutil.copytree(whole(config), tmp_path / "run")
    newest = tmp_path / "run" / "checkpoint_80.zip"
    newest.write_bytes(newest.read_bytes()[:-100])
    train(config, tmp_path / "run", resume=True)
    assert "checkpoint_80.zip" in caplog.text
    assert_same_run(tmp_path / "run", whole(config), config)
    assert tensors(newest) == tensors(whole(config) / newest.name)


# --- longer runs ---


@pytest.mark.parametrize("first", [41, 80])
@EVERY_ALGORITHM
def test_a_run_made_longer_ends_as_if_it_had_been_that_long_from_the_start(tmp_path, whole, unjudged, algo, first):
    """With 41 steps each algorithm's last rollout is cut short, just where a checkpoint is due."""
    config = tiny_config(algo, RACER, checkpoint={"interval": first})
    shorter = tiny_config(algo, RACER, steps=first, checkpoint={"interval": first})
    assert train(shorter, tmp_path).step == first
    assert train(config, tmp_path, resume=True).step == 100
    assert_same_run(tmp_path, whole(config), config)
    assert read_events(tmp_path) == read_events(whole(config))


def test_a_finished_run_with_nothing_to_add_only_writes_its_documents_again(tmp_path, whole, unjudged):
    """As after a kill between the last checkpoint and the results."""
    config = tiny_config(steps=80, evaluation={"interval": 40, "episodes": 1})
    shutil.copytree(whole(config), tmp_path / "run")
    RunFolder(tmp_path / "run", config.experiment_id).results.unlink()
    train(config, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", whole(config), config)
    assert read_events(tmp_path / "run") == read_events(whole(config))


# --- worlds that cannot be saved ---


@pytest.mark.parametrize(("algo", "env"), [("ppo", LUNAR), ("sac", "Pendulum-v1")])
def test_over_envpool_a_resumed_run_says_that_its_episodes_start_anew_and_goes_on(
    tmp_path, unjudged, caplog, algo, env
):
    pytest.importorskip("envpool")
    config = tiny_config(algo, env, num_envs=2, backend="envpool", env_args={})
    stopped = train(config, tmp_path, stop_at=70)
    begun = []

    class Look(BaseCallback):
        def _on_rollout_start(self):
            if not begun:
                normalizer = self.model.get_vec_normalize_env()
                seen = normalizer.unnormalize_obs(self.model._last_obs.copy())
                begun.append((self.num_timesteps, seen, normalizer.get_original_obs(), self.model._last_original_obs))

        def _on_step(self):
            return True

    trainer = Trainer(config, folder_at(tmp_path, config), callbacks=[Look()])
    outcome = trainer.run(trainer.checkpoints.find_newest())
    assert "their episodes start anew" in caplog.text
    assert (outcome.results is not None, outcome.step) == (True, 100)
    step, seen, original, remembered = begun[0]
    assert 0 < step < stopped.step
    np.testing.assert_allclose(seen, original, atol=1e-4)
    np.testing.assert_array_equal(remembered, original)
    steps = [point["timestep"] for point in metrics(RunFolder(tmp_path, config.experiment_id))["time_series"]]
    assert steps == list(range(10, 101, 10))


# --- evaluations ---

RUDE = "hotlap-tests/Rude-v0"


class Rude(gym.Env):
    """Draws its chance from the generator that everybody has in common."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 9
        return self.look(), {}

    def step(self, action):
        self.left -= 1
        return self.look(), float(action[0]), False, self.left == 0, {}

    def look(self):
        return np.random.uniform(-1.0, 1.0, 2).astype(np.float32)  # noqa: NPY002


@pytest.fixture
def rude():
    gym.register(RUDE, Rude)
    yield RUDE
    del gym.registry[RUDE]


def run_twice(tmp_path, **changes):
    """The same run without and with evaluations: its folders."""
    folders = []
    for interval in (0, 25):
        config = tiny_config(**changes, evaluation={"interval": interval, "episodes": 2})
        train(config, tmp_path / str(interval))
        folders.append(RunFolder(tmp_path / str(interval), config.experiment_id))
    return folders


@EVERYWHERE
@EVERY_ALGORITHM
def test_evaluating_does_not_disturb_training(tmp_path, algo, env):
    without, evaluated = run_twice(tmp_path, algo=algo, env=env, num_envs=2, steps=60)
    assert tensors(without.model) == tensors(evaluated.model)
    assert metrics(without) == metrics(evaluated)
    assert evaluated.best.exists()
    assert not without.best.exists()


def test_not_even_where_the_environment_draws_from_everybodys_generator(tmp_path, rude):
    without, evaluated = run_twice(tmp_path, env=rude)
    assert tensors(without.model) == tensors(evaluated.model)


def test_the_best_model_is_that_of_the_evaluation_that_was_best(tmp_path, monkeypatch):
    scores = iter([1.0, 5.0, 2.0, 3.0])
    config = tiny_config(steps=128, evaluation={"interval": 32, "episodes": 1}, checkpoint={"interval": 32})
    skip_evaluation(monkeypatch)
    monkeypatch.setattr(PolicyEvaluator, "judge", lambda *_: PolicyScore((next(scores),), {}, 0.0))
    train(config, tmp_path)
    folder = RunFolder(tmp_path, config.experiment_id)
    best, then = tensors(folder.best), tensors(tmp_path / "checkpoint_64.zip")
    assert {name: best[name] for name in then} == then
    assert best != tensors(folder.model)


# --- what cannot be gone on with ---


def stop_and_forge(tmp_path, config, change):
    """A stopped run whose checkpoint was changed: `change` gets the card and the state."""
    train(config, tmp_path, stop_at=50)
    path = CheckpointManager(tmp_path).find_newest().path
    archive = read_archive(path)
    about, state = dict(archive.about), dict(archive.documents["state"])
    about["card"] = dict(about["card"])
    change(about["card"], state)
    write_archive(path, Archive(about, {"state": state}, archive.tensors))
    for other in tmp_path.glob("checkpoint_*.zip"):
        if other != path:
            other.unlink()
    return path


def test_a_configuration_that_was_edited_is_refused(tmp_path, unjudged):
    train(tiny_config(), tmp_path, stop_at=50)
    with pytest.raises(ModelError, match="was written under another configuration than"):
        train(tiny_config(ppo={"n_epochs": 3}), tmp_path, resume=True)


def test_a_checkpoint_of_other_physics_is_refused(tmp_path, unjudged):
    config = tiny_config()
    stop_and_forge(tmp_path, config, lambda card, state: card.update(physics="0-old"))
    with pytest.raises(ModelError, match="was trained on physics 0-old"):
        train(config, tmp_path, resume=True)


def test_a_checkpoint_with_a_part_missing_is_refused_and_the_run_stays_as_it_was(tmp_path, unjudged):
    config = tiny_config()
    path = stop_and_forge(tmp_path, config, lambda card, state: state["books"].pop("keeper"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    with pytest.raises(StateError, match=f"{path.name}: cannot be gone on from: 'keeper'"):
        train(config, tmp_path, resume=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


# --- a full disk ---


@pytest.fixture
def small_disk(tmp_path):
    """A disk of half a megabyte."""
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root on Linux can mount a disk for a test")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=512k", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a disk")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


class Filling(BaseCallback):
    """Fills the disk from one step to another."""

    def __init__(self, disk: Path, first: int, last: int) -> None:
        super().__init__()
        self._file, self._first, self._last = disk / "filler", first, last

    def _on_step(self) -> bool:
        if self.num_timesteps == self._first:
            with self._file.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(512))
                except OSError:
                    pass
        if self.num_timesteps == self._last:
            self._file.unlink()
        return True


def test_a_full_disk_costs_the_new_checkpoint_only(small_disk, whole, unjudged, caplog):
    config = tiny_config(steps=150, recording_interval=1)
    path = small_disk / "run"
    trainer = Trainer(config, folder_at(path, config), callbacks=[Filling(small_disk, 50, 110)])
    seen = []

    class Look(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 100:
                seen.append(trainer.checkpoints.find_newest().step)
            return True

    trainer.callbacks = (*trainer.callbacks, Look())
    assert trainer.run().step == 150
    assert seen == [40]
    assert "checkpoint_80.zip: cannot be written (No space left on device)" in caplog.text
    assert "The run goes on" in caplog.text
    assert "metrics.jsonl: cannot be written" in caplog.text
    assert trainer.checkpoints.steps() == [40, 120]
    assert_same_run(path, whole(config), config)
    assert read_events(path) == read_events(whole(config))


def test_a_stop_on_a_full_disk_is_known_to_be_unsaved_and_the_checkpoint_before_is_good(small_disk, whole, unjudged):
    config, path = tiny_config(), small_disk / "run"
    trainer = Trainer(config, folder_at(path, config))

    class Stop(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 70:
                trainer.stop()
            return True

    trainer.callbacks = (Filling(small_disk, 60, 1000), Stop())
    outcome = trainer.run()
    assert (outcome.results, outcome.is_saved) == (None, False)
    (small_disk / "filler").unlink()
    train(config, path, resume=True)
    assert_same_run(path, whole(config), config)
