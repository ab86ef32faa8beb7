"""Runs in races: stopped and resumed, and what their evaluations say."""

from hotlap.learning.ppo import PPO
from hotlap.runs.run_folder import RunFolder
from hotlap.training import race_evaluation
from race_runs import race_config
from tiny_runs import assert_same_run, read_events, train


def test_a_run_stopped_and_resumed_in_the_middle_of_races_is_bit_identical(tmp_path, whole, unevaluated):
    config = race_config()
    train(config, tmp_path / "stopped", stop_at=150)
    train(config, tmp_path / "stopped", stop_at=290, resume=True)
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", whole(config), config)


def test_a_run_with_graphs_is_bit_identical_after_a_resume(tmp_path, unevaluated, monkeypatch):
    """As on a GPU, by the same code without one."""
    monkeypatch.setattr(PPO, "_uses_graphs", True)
    config = race_config()
    train(config, tmp_path / "whole")
    train(config, tmp_path / "stopped", stop_at=200)
    train(config, tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole", config)


def test_evaluations_log_races_and_keep_the_best_model(tmp_path, monkeypatch):
    monkeypatch.setattr(race_evaluation, "NUM_RACES", 1)
    monkeypatch.setattr(race_evaluation, "NUM_LAPS", 1)
    monkeypatch.setattr(race_evaluation, "MAX_TRACKS", 1)
    config = race_config(evaluation={"interval": 400, "episodes": 1, "final_episodes": 1})
    train(config, tmp_path)
    events = read_events(tmp_path)
    names = ("win_rate", "mean_position", "at_fault_contacts_per_km", "clean_overtakes_per_race", "elo")
    assert all(len(events[f"race/{name}"]) == 1 for name in names)
    assert 1.0 <= events["race/mean_position"][0][1] <= 8.0
    assert RunFolder(tmp_path, config.experiment_id).best.exists()
