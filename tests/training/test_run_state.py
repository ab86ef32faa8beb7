"""The state of a run: what a checkpoint must be to fit, and what is said where it does not."""

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.errors import ModelError, StateError
from hotlap.training.checkpoint import Checkpoint
from hotlap.training.learners import policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.run_state import RunState
from small_learners import learn, ours, weights
from tiny_runs import tiny_config

CONFIG = tiny_config()


class Kept:
    """Plain data that is kept."""

    def __init__(self, **state):
        self.state = state

    def get_state(self, flush=True):
        return self.state

    def set_state(self, state):
        self.state = state


def state_of(learner, log):
    writer = SimpleNamespace(collector=Kept(), folder=SimpleNamespace(config=Path("config.json")))
    return RunState(CONFIG, learner, log, writer)


@pytest.fixture
def trained():
    """A learner after an update, and the checkpoint of that."""
    learner, _ = learn(ours(CONFIG), 1)
    state = state_of(learner, Kept(episodes=3))
    state._trained_before_s, state.started_s = 100.0, 5.0
    card = make_card(CONFIG, policy_spaces(CONFIG, learner)).as_plain()
    return learner, Checkpoint(Path("checkpoint_32.zip"), 32, card, state.capture(Kept(best=1.0)))


def test_a_restored_run_is_the_one_that_was_captured(trained):
    learner, checkpoint = trained
    other, log, checkpointing = ours(CONFIG), Kept(), Kept()
    state = state_of(other, log)
    state.restore(checkpoint, checkpointing)
    assert (weights(other) == weights(learner)).all()
    assert (other.num_timesteps, log.state, checkpointing.state) == (32, {"episodes": 3}, {"best": 1.0})
    assert state.started_s == 5.0
    assert 100.0 <= state.trained_s < 200.0


def test_another_configuration_or_road_is_refused(trained):
    _, checkpoint = trained
    state = state_of(ours(CONFIG), Kept())
    for name, message in (
        ("config_digest", "another configuration than config.json"),
        ("track_digest", "another road"),
    ):
        changed = replace(checkpoint, card={**checkpoint.card, name: "0" * 16})
        with pytest.raises(ModelError, match=f"checkpoint_32.zip: was .*{message}"):
            state.restore(changed, Kept())


def test_a_state_that_lacks_something_is_refused_in_one_line(trained):
    _, checkpoint = trained
    plain = {**checkpoint.snapshot.plain, "bookkeeping": {}}
    damaged = replace(checkpoint, snapshot=replace(checkpoint.snapshot, plain=plain))
    with pytest.raises(StateError, match=r"checkpoint_32\.zip: cannot resume from this checkpoint"):
        state_of(ours(CONFIG), Kept()).restore(damaged, Kept())


def test_another_number_of_processes_is_said(trained, caplog):
    _, checkpoint = trained
    plain = dict(checkpoint.snapshot.plain)
    plain["bookkeeping"] = {**plain["bookkeeping"], "num_processes": 2}
    divided = replace(checkpoint, snapshot=replace(checkpoint.snapshot, plain=plain))
    with caplog.at_level(logging.WARNING):
        state_of(ours(CONFIG), Kept()).restore(divided, Kept())
    assert "written by 2 processes; with 1, the resumed run will not be bit-identical" in caplog.text
