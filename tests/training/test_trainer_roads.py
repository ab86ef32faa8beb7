"""Runs on a stream of generated roads."""

import pytest

from hotlap.errors import ConfigError, ProcessLostError, TrainingError
from hotlap.learning.ppo import PPO
from hotlap.runs import run_config
from hotlap.runs.run_folder import RunFolder
from hotlap.training import learners
from hotlap.training.checkpoint import CheckpointManager, load_checkpoint
from hotlap.training.trainer import Observer, Trainer
from road_sources import ShippedRoads
from tiny_runs import REMOTE_RACER, assert_same_run, folder_at, results, tensors, tiny_config, train

RACER = {"track": "generated", "roads": 3, "new_roads": 1}


def stream_config(algo="ppo", env="hotlap/Racer-v0", racer=RACER, **changes):
    episode = {"max_ticks": 30, "stillness_timeout_ticks": 25, "start": "random"}
    return tiny_config(algo, env, 6, **{"steps": 900, "racer": {**racer, "episode": episode}, **changes})


@pytest.fixture(autouse=True)
def shipped_roads(monkeypatch):
    """No processes, and few tracks for evaluations."""
    monkeypatch.setattr(learners, "RoadWorkers", ShippedRoads)
    monkeypatch.setattr(run_config, "evaluation_ids", lambda: ["track-01", "track-02"])


def test_a_run_is_a_function_of_its_configuration(tmp_path, whole, unevaluated):
    config = stream_config()
    train(config, tmp_path / "one")
    assert_same_run(tmp_path / "one", whole(config), config)
    fixed = stream_config(racer={**RACER, "new_roads": 0})
    train(fixed, tmp_path / "fixed")
    saved, others = (tensors(RunFolder(tmp_path / name, "ppo_seed42").model) for name in ("one", "fixed"))
    assert all(saved[name] != others[name] for name in saved if "weight" in name)


def test_a_run_stopped_and_resumed_while_roads_change_is_bit_identical(tmp_path, whole, unevaluated, monkeypatch):
    """Rollouts have 192 decisions: each of the three stops lies on other roads."""
    config = stream_config()
    train(config, tmp_path / "stopped", stop_at=250)
    for stop_at in (500, 700):
        train(config, tmp_path / "stopped", stop_at, resume=True)
    whole(config)
    taken = []
    monkeypatch.setattr(learners, "RoadWorkers", lambda *_: taken.append(ShippedRoads(42)) or taken[0])
    steps = CheckpointManager(tmp_path / "stopped").steps()
    assert load_checkpoint(tmp_path / "stopped" / f"checkpoint_{steps[-1]}.zip").snapshot.next_road == 6
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", whole(config), config)
    assert taken[0].taken == [3, 4, 5, 6, 7]  # those of the checkpoint, then one for each of the last two rollouts
    assert taken[0].is_closed


def test_a_run_with_graphs_is_bit_identical_after_a_resume(tmp_path, unevaluated, monkeypatch):
    """As on a GPU, by the same code without one."""
    monkeypatch.setattr(PPO, "_uses_graphs", True)
    config = stream_config()
    train(config, tmp_path / "whole")
    train(config, tmp_path / "stopped", stop_at=400)
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole", config)


class RolloutEnds(Observer):
    """Notes, after each rollout, the episodes of the cars, and its first and last observations."""

    def __init__(self):
        self.episodes, self.lengths, self.first, self.last = [], [], [], []

    def on_rollout_start(self, learner):
        if learner._parts is not None:
            rollout = learner._parts.rollout
            self.episodes.append(learner._cars.fleet.states["episode"].tolist())
            self.lengths.append(learner._cars._lengths.tolist())
            self.first.append(rollout.observations[0].clone())
            self.last.append(rollout.obs.clone())  # what the last value is of
            assert not rollout.ended.any()


def test_a_replaced_road_cuts_episodes_off_after_the_value_of_their_last_state(tmp_path, unevaluated):
    """Episodes outlast rollouts of 32 decisions, so only a replaced road begins one: first that of cars 0 and 1."""
    episode = {"max_ticks": 2000, "stillness_timeout_ticks": 2000, "start": "random"}
    config = tiny_config(num_envs=6, steps=400, racer={**RACER, "episode": episode}, checkpoint={"interval": 0})
    seen = RolloutEnds()
    Trainer(config, folder_at(tmp_path, config), observers=[seen]).run()
    assert seen.episodes == [[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]]
    assert seen.lengths == [[32] * 6, [64, 64, 32, 32, 64, 64]]
    goes_on = (seen.last[0] == seen.first[1]).all(1).tolist()
    assert goes_on == [True, True, False, False, True, True]


def test_evaluations_drive_other_roads_and_have_no_gap(tmp_path):
    config = stream_config(steps=200, evaluation={"interval": 100, "episodes": 2, "final_episodes": 2})
    train(config, tmp_path)
    found = results(RunFolder(tmp_path, "ppo_seed42"))
    assert (found["evaluation"]["track"], found["evaluation"]["gap_to_optimal"]) == ("2 tracks", None)
    assert (found["environment"]["track"], found["environment"]["roads"]) == ("generated", 3)
    assert found["provenance"]["track_digest"] is not None


def test_a_lost_process_is_one_line_that_names_the_checkpoint(tmp_path, whole, unevaluated, monkeypatch):
    monkeypatch.setattr(ShippedRoads, "lost_at", 5)
    words = (
        r"run: the process 1 that makes roads was killed by signal 9, so training stopped at step 384\. "
        r"checkpoint_384\.zip is intact: hotlap resume \S*run\.$"
    )
    with pytest.raises(ProcessLostError, match=words):
        train(stream_config(), tmp_path / "run")
    monkeypatch.setattr(ShippedRoads, "lost_at", None)
    train(stream_config(), tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", whole(stream_config()), stream_config())


@pytest.mark.parametrize(
    "changes",
    [
        {"algo": "sac"},
        {"algo": "a2c"},
        {"ppo": {"target_kl": 0.1}},
        {"env": REMOTE_RACER, "env_args": {"bridge_url": "ws://127.0.0.1:1"}},
    ],
    ids=["sac", "a2c", "target_kl", "bridge"],
)
def test_other_learners_are_refused_in_one_line(tmp_path, changes):
    with pytest.raises(
        TrainingError, match=r"^racer\.track generated: only PPO .* Change the settings or name a track\.$"
    ):
        train(stream_config(**changes), tmp_path)


def test_settings_of_a_stream_are_for_a_stream_only_and_other_runs_keep_their_digest():
    with pytest.raises(ConfigError, match=r'new_roads: it is for track = "generated" only\. Leave it out\.$'):
        tiny_config(racer={"new_roads": 2})
    with pytest.raises(ConfigError, match=r'generated is no list of tracks\. Write track = "generated" instead\.$'):
        tiny_config(racer={"tracks": ["generated"]})
    assert not {"roads", "new_roads"} & set(tiny_config().as_plain()["racer"])
    assert stream_config().digest() != stream_config(racer={**RACER, "roads": 4}).digest()
