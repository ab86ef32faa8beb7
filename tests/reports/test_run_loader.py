"""Reading a run's folder, finished or not."""

import json

import numpy as np
import pytest

# Imported here, outside the time limit of a test, because it loads torch.
import hotlap.training.sb3.vec_envs.factory  # noqa: F401
from hotlap.errors import ConfigError, HotlapError, InputFileError, ModelError
from hotlap.reports.run_loader import is_run, read_run
from hotlap.reports.run_record import EvaluationFigures
from reports.written_runs import LANDER_CURVES, LUNAR, RACER, RACER_CURVES, points_of, write_run

EVALUATION = {"completion_rate": 0.96, "clean_lap_rate": 0.9, "median_lap_time_sec": 31.5, "gap_to_optimal": 0.11}


def test_finished_run_on_the_racer(tmp_path):
    racer = {"track": "track-02", "action_repeat": 4}
    write_run(tmp_path / "r", logged=points_of(RACER_CURVES), evaluation=EVALUATION, racer=racer, ppo={"gamma": 0.9})
    found = read_run(str(tmp_path / "r"))
    assert (found.name, found.folder, found.algorithm, found.seed) == ("r", tmp_path / "r", "ppo", 1)
    assert (found.environment, found.track, found.reward_threshold) == (RACER, "track-02", None)
    assert (found.requested_steps, found.step, found.is_finished, found.num_episodes) == (4000, 4000, True, 80)
    assert found.training_s == 123.0
    assert found.final == EvaluationFigures(4000, 240.0, 20.0, 300.0, 0.96, 0.9, 31.5, 0.11)
    assert found.settings["ppo.gamma"] == 0.9
    assert found.settings["racer.action_repeat"] == 4
    reward = found.curve("metrics/reward")
    assert (reward.step[0], reward.step[-1], len(reward)) == (100, 4000, 40)
    assert reward.value == pytest.approx(reward.step / 1000.0)
    laps = found.curve("eval/median_lap_time_sec")
    assert (laps.step.tolist(), laps.value.tolist()) == ([2000, 4000], [37.0, 32.0])


def test_run_on_lunar_lander_has_its_threshold(tmp_path):
    write_run(tmp_path / "r", env=LUNAR, logged=points_of(LANDER_CURVES))
    found = read_run(str(tmp_path / "r"))
    assert (found.track, found.reward_threshold) == (None, 200.0)
    assert found.solved_at == (3000, pytest.approx(300.0))
    assert found.final == EvaluationFigures(4000, 240.0, 20.0, 300.0)


def test_unfinished_run_is_read_from_its_journal(tmp_path):
    folder = write_run(tmp_path / "r", is_finished=False, logged=points_of(RACER_CURVES))
    with folder.journal.open("ab") as journal:
        journal.write(b'{"timestep": 2100, "epi')  # being written
    found = read_run(str(tmp_path / "r"))
    assert (found.is_finished, found.step, found.requested_steps, found.final) == (False, 2000, 4000, None)
    assert found.training_s == pytest.approx(200.0)
    assert found.num_episodes == 40
    assert found.last_seen == "2023-11-14T22:16:40.000Z"
    logged = (float(np.float32(value)) for value in (0.5, 0.8, 37.0, 0.31))  # event files hold float32
    assert found.figures == EvaluationFigures(2000, float(np.float32(0.9)), None, None, *logged)


def test_extended_run_is_not_read_from_its_outdated_document(tmp_path):
    folder = write_run(tmp_path / "r")
    folder.results.unlink()
    lines = folder.journal.read_text().splitlines()
    further = {**json.loads(lines[-1]), "timestep": 4100}
    folder.journal.write_text("\n".join([*lines, json.dumps(further)]) + "\n")
    assert read_run(str(tmp_path / "r")).step == 4100


def test_run_without_any_metrics(tmp_path):
    folder = write_run(tmp_path / "r", is_finished=False)
    folder.journal.unlink()
    found = read_run(str(tmp_path / "r"))
    assert (found.step, found.training_s, found.last_seen, found.figures) == (0, None, None, None)


def test_cars_behind_a_bridge_count_as_the_racer_and_unknown_ones_have_no_threshold(tmp_path):
    write_run(tmp_path / "r", env="hotlap/RemoteRacer-v0", racer={"track": "track-03"})
    found = read_run(str(tmp_path / "r"))
    assert (found.environment, found.track) == (RACER, "track-03")
    for name, env in (("a", "Nowhere-v7"), ("b", "no_such_module:Nowhere-v7")):
        write_run(tmp_path / name, env=env)
        assert read_run(str(tmp_path / name)).reward_threshold is None


def test_run_is_found_by_folder_or_name_and_any_other_folder_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "results" / "experiments" / "mine")
    assert is_run("mine")
    assert is_run("results/experiments/mine")
    assert read_run("mine").name == "mine"
    assert not is_run("yours")
    assert not is_run("casual")
    assert not is_run("x" * 5000)
    with pytest.raises(InputFileError, match="no run there"):
        read_run(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("config.toml", "algo = 'dqn'", ConfigError),
        ("ppo_seed1_results.json", "{", ModelError),
        ("ppo_seed1_metrics.json", '{"training_metrics": {}}', ModelError),
    ],
)
def test_damaged_file_is_named_in_the_error(tmp_path, name, content, error):
    write_run(tmp_path / "r")
    (tmp_path / "r" / name).write_text(content)
    with pytest.raises(error, match=name) as refusal:
        read_run(str(tmp_path / "r"))
    assert isinstance(refusal.value, HotlapError)
