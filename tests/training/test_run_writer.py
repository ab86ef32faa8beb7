"""What a run writes, in which order, and the writer that writes nothing."""

import pytest

from hotlap.runs.journal import Journal
from hotlap.runs.metrics_journal import read_journal
from hotlap.runs.run_folder import RunFolder
from hotlap.training.run_writer import SilentRunWriter
from hotlap.training.trainer import Observer, Trainer
from tiny_runs import folder_at, read_events, skip_evaluation, tiny_config, train


def test_a_checkpoint_is_written_after_the_metrics_and_events_before_it(tmp_path, monkeypatch):
    """A kill right after it must lose none of them: the resumed run does not make them again."""
    skip_evaluation(monkeypatch)
    config = tiny_config(checkpoint={"interval": 32})
    monkeypatch.setattr(Journal.__init__, "__defaults__", (0, 3600.0))  # nothing is flushed at intervals
    seen = {}

    class Look(Observer):
        def on_step(self, events):
            if events.num_timesteps == 65:
                seen.update(read_events(tmp_path))
                seen["points"] = len(read_journal(tmp_path / "ppo_seed42_metrics.jsonl").points)
            return True

    Trainer(config, folder_at(tmp_path, config), observers=[Look()]).run()
    assert [step for step, _ in seen["rollout/ep_rew_mean"]] == [32, 64]
    assert seen["points"] == 7  # the first step, and every tenth


class Weights(Observer):
    """Keeps the learner, to read its weights at the end."""

    def on_rollout_start(self, learner):
        self.learner = learner

    @property
    def found(self):
        return {name: array.tobytes() for name, array in self.learner.policy().weights.items()}


@pytest.mark.parametrize("algo", ["ppo", "sac", "a2c"])
def test_a_silent_writer_writes_no_file_and_changes_no_weight(tmp_path, algo, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config(algo, evaluation={"interval": 50, "episodes": 1})
    written, silent = Weights(), Weights()
    Trainer(config, folder_at(tmp_path / "written", config), observers=[written]).run()
    folder = RunFolder(tmp_path, config.experiment_id)
    outcome = Trainer(config, folder, observers=[silent], writer=SilentRunWriter(config, folder)).run()
    assert (outcome.step, outcome.results) == (100, None)
    assert silent.found == written.found
    assert [path.name for path in tmp_path.iterdir()] == ["written"]


def test_a_silent_writer_resumes_and_stops_without_writing(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config()
    train(config, tmp_path, stop_at=50)
    folder = folder_at(tmp_path, config)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    checkpoint = Trainer(config, folder).checkpoints.find_newest()
    assert Trainer(config, folder, writer=SilentRunWriter(config, folder)).run(checkpoint).step == 100
    stopped = Trainer(config, folder, writer=SilentRunWriter(config, folder))
    stopped.stop()
    assert stopped.run(checkpoint).step == 33
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
