"""A run that was stopped, killed or extended, and then resumed, is bit-identical to an uninterrupted one."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from hotlap.envs.domain import DomainRules
from hotlap.errors import ModelError, StateError
from hotlap.learning.cars import Cars
from hotlap.learning.ppo import PPO
from hotlap.models.archive import read_archive, write_archive
from hotlap.runs.json_documents import encode
from hotlap.runs.metrics_document import TrainingMetrics
from hotlap.runs.run_folder import RunFolder
from hotlap.sim.world import INFO_DTYPE
from hotlap.training import trainer as trainer_module
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.trainer import Observer, Trainer
from tiny_runs import (
    ALGORITHMS,
    LUNAR,
    RACER,
    SMALL,
    assert_same_run,
    folder_at,
    metrics,
    read_events,
    tensors,
    tiny_config,
    train,
)

EVERYWHERE = pytest.mark.parametrize("env", [RACER, LUNAR], ids=["racer", "lunar"])
EVERY_ALGORITHM = pytest.mark.parametrize("algo", ALGORITHMS)


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


@pytest.mark.parametrize(
    ("algo", "env", "num_envs"),
    [
        *((algo, env, 3) for algo in ALGORITHMS for env in (RACER, LUNAR)),
        ("ppo", RACER, 1),
        ("sac", LUNAR, 1),
        *(
            pytest.param(algo, env, 1, marks=pytest.mark.slow)
            for algo, env in (("ppo", LUNAR), ("sac", RACER), ("a2c", RACER), ("a2c", LUNAR))
        ),
    ],
)
def test_a_run_stopped_and_resumed_three_times_is_bit_identical(tmp_path, whole, unevaluated, algo, env, num_envs):
    config = tiny_config(algo, env, num_envs)
    reached = [train(config, tmp_path, stop_at=7).step]
    for stop_at in (40, 73):
        reached.append(train(config, tmp_path, stop_at, resume=True).step)
    assert all(7 <= step < 100 for step in reached)
    train(config, tmp_path, resume=True)
    assert_same_run(tmp_path, whole(config), config)


def test_a_run_with_cars_that_differ_is_resumed_bit_identically(tmp_path, unevaluated):
    domain = DomainRules(0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 1, 4, 0.02)
    config = tiny_config(num_envs=3)
    racer = replace(config.racer, domain=domain)
    config = replace(config, racer=racer)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", stop_at=40)
    train(config, tmp_path / "parts", resume=True)
    assert_same_run(tmp_path / "parts", tmp_path / "whole", config)
    plain = tiny_config(num_envs=3)
    train(plain, tmp_path / "plain")
    saved = [tensors(RunFolder(tmp_path / name, plain.experiment_id).model) for name in ("whole", "plain")]
    assert saved[0] != saved[1]


@EVERYWHERE
@EVERY_ALGORITHM
def test_a_run_resumed_from_any_of_its_checkpoints_is_bit_identical(tmp_path, whole, unevaluated, algo, env):
    """As after a kill at any later time: points and events past the checkpoint exist and must be dropped."""
    config = tiny_config(algo, env, num_envs=3)
    steps = CheckpointManager(whole(config)).steps()
    assert steps == [42, 81]
    for step in steps:
        killed = tmp_path / str(step)
        shutil.copytree(whole(config), killed)
        folder = RunFolder(killed, config.experiment_id)
        points = TrainingMetrics.load(folder.metrics).time_series
        folder.journal.write_bytes(b"".join(encode(point) + b"\n" for point in points))
        for path in (folder.results, folder.metrics, folder.model):
            path.unlink()
        for later in (one for one in steps if one > step):
            (killed / f"checkpoint_{later}.zip").unlink()
        with folder.journal.open("ab") as journal:
            journal.write(b'{"timestep": 999, "epi')  # torn in the middle of a write
        for name in (".checkpoint_99.zip.1-2.partial", ".ppo_seed42_results.json.1-2.partial"):
            (killed / name).write_bytes(b"half")
        assert train(config, killed, resume=True).step == 102
        assert_same_run(killed, whole(config), config)
        assert list(killed.glob("*.partial")) == []


def test_returns_over_several_decisions_survive_a_stop(tmp_path, whole, unevaluated):
    """The replay buffer of 25 decisions per car is full at the second stop, so returns wrap around its end."""
    settings = {"n_steps": 4, "target_entropy": -2.0, "initial_ent_coef": 0.1, "final_lr_fraction": 0.2}
    config = tiny_config("sac", RACER, num_envs=3, steps=150, sac={**SMALL["sac"], **settings})
    for stop_at, resume in ((50, False), (110, True)):
        assert stop_at <= train(config, tmp_path, stop_at, resume).step < 150
    train(config, tmp_path, resume=True)
    assert_same_run(tmp_path, whole(config), config)


def test_a_run_with_graphs_stopped_and_resumed_is_bit_identical(tmp_path, unevaluated, monkeypatch):
    """As on a GPU, where a rollout cannot be stopped halfway; here without a GPU, by the same code."""
    monkeypatch.setattr(PPO, "_uses_graphs", True)
    config = tiny_config(num_envs=3, steps=400)
    train(config, tmp_path / "whole")
    reached = [train(config, tmp_path / "stopped", stop_at=7).step]
    for stop_at in (120, 250):
        reached.append(train(config, tmp_path / "stopped", stop_at, resume=True).step)
    assert reached == sorted(reached)
    assert all(step < 400 for step in reached)
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole", config)


def test_a_run_can_be_stopped_at_any_step_before_its_last_rollout(tmp_path, whole, unevaluated):
    """PPO's rollouts have 32 steps: at the first, within, at the last, and before the short one at the end."""
    config = tiny_config()
    for stop_at in (1, 20, 31, 32, 33, 96):
        path = tmp_path / str(stop_at)
        outcome = train(config, path, stop_at)
        assert (outcome.results, outcome.step) == (None, stop_at + 1)
        train(config, path, resume=True)
        assert_same_run(path, whole(config), config)
    for stop_at in (98, 100):
        assert train(config, tmp_path / str(stop_at), stop_at).results is not None


def test_a_lap_before_the_stop_counts_for_the_episode_that_ends_after_it(tmp_path, unevaluated, monkeypatch):
    """Car 0 reports a lap at the first of the 30 steps of each of its episodes."""
    step = Cars.step

    def lapping(self):
        step(self)
        info = self.infos.numpy().view(INFO_DTYPE)[0, 0]
        if self.episode_lengths[0] == 1:
            info["lapTime"], info["lapClean"], info["lap"], info["stepCount"] = 30.0, True, 2, 1
        elif self.ended[0]:
            info["lap"] = 2

    monkeypatch.setattr(Cars, "step", lapping)
    monkeypatch.setattr(trainer_module, "has_time_for_laps", lambda _: True)
    config = tiny_config()
    train(config, tmp_path / "whole")
    assert train(config, tmp_path / "stopped", stop_at=40).step == 41
    train(config, tmp_path / "stopped", resume=True)
    expected = read_events(tmp_path / "whole")
    assert [value for _, value in expected["racer/completion_rate"]] == [1.0, 1.0, 1.0]
    assert read_events(tmp_path / "stopped") == expected


def drop_results(run):
    """As after a kill between the last checkpoint and the results."""
    (run / "ppo_seed42_results.json").unlink()


def drop_checkpoints(run):
    for checkpoint in run.glob("checkpoint_*.zip"):
        checkpoint.unlink()


def damage_newest_checkpoint(run):
    newest = run / "checkpoint_80.zip"
    newest.write_bytes(newest.read_bytes()[:-100])


@pytest.mark.parametrize("harm", [drop_results, drop_checkpoints, damage_newest_checkpoint])
def test_what_a_run_has_lost_is_made_again(tmp_path, whole, unevaluated, caplog, harm):
    config, run = tiny_config(steps=80, evaluation={"interval": 40, "episodes": 1}), tmp_path / "run"
    shutil.copytree(whole(config), run)
    harm(run)
    train(config, run, resume=True)
    assert_same_run(run, whole(config), config)
    if harm != drop_results:
        assert tensors(run / "checkpoint_80.zip") == tensors(whole(config) / "checkpoint_80.zip")
    assert ("checkpoint_80.zip" in caplog.text) == (harm == damage_newest_checkpoint)


@pytest.mark.parametrize("first", [41, 80])
@EVERY_ALGORITHM
def test_an_extended_run_is_bit_identical_to_one_of_that_length(tmp_path, whole, unevaluated, algo, first):
    """With 41 steps the last rollout of every algorithm is cut short where a checkpoint is due."""
    config = tiny_config(algo, RACER, checkpoint={"interval": first})
    shorter = tiny_config(algo, RACER, steps=first, checkpoint={"interval": first})
    assert train(shorter, tmp_path).step == first
    assert train(config, tmp_path, resume=True).step == 100
    assert_same_run(tmp_path, whole(config), config)


# --- environments that cannot be saved ---


@pytest.mark.parametrize(("algo", "env"), [("ppo", LUNAR), ("sac", "Pendulum-v1")])
def test_a_resumed_run_over_envpool_warns_that_its_episodes_restart_and_continues(
    tmp_path, unevaluated, caplog, algo, env
):
    pytest.importorskip("envpool")
    config = tiny_config(algo, env, num_envs=2, backend="envpool", env_args={})
    stopped = train(config, tmp_path, stop_at=70)
    begun = []

    class Look(Observer):
        def on_rollout_start(self, learner):
            if not begun:
                model = learner.model
                normalizer = model.get_vec_normalize_env()
                seen = normalizer.unnormalize_obs(model._last_obs.copy())
                begun.append((model.num_timesteps, seen, normalizer.get_original_obs(), model._last_original_obs))

    trainer = Trainer(config, folder_at(tmp_path, config), observers=[Look()])
    outcome = trainer.run(trainer.checkpoints.find_newest())
    assert "Their episodes restart" in caplog.text
    assert (outcome.results is not None, outcome.step) == (True, 100)
    step, seen, original, remembered = begun[0]
    assert 0 < step < stopped.step
    np.testing.assert_allclose(seen, original, atol=1e-4)
    np.testing.assert_array_equal(remembered, original)
    steps = [point["timestep"] for point in metrics(RunFolder(tmp_path, config.experiment_id))["time_series"]]
    assert steps == [2, *range(10, 101, 10)]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda card, state: card.update(physics="0-old"), ModelError, "physics 0-old"),
        (
            lambda card, state: card.update(config_digest="x"),
            ModelError,
            "was written under another configuration than",
        ),
        (lambda card, state: state.pop("format"), StateError, "written by another version of hotlap"),
        (
            lambda card, state: state["bookkeeping"].pop("checkpointing"),
            StateError,
            r"checkpoint_51\.zip: cannot resume from this checkpoint: it does not fit .* \('checkpointing'\)",
        ),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_the_run_is_unchanged(
    tmp_path, unevaluated, change, error, words
):
    config = tiny_config(checkpoint={"interval": 0})
    train(config, tmp_path, stop_at=50)
    archive = read_archive(path := tmp_path / "checkpoint_51.zip")
    change(archive.about["card"], archive.documents["state"])
    write_archive(path, archive)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(error, match=words):
        train(config, tmp_path, resume=True)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
