"""Who drives the cars that do not learn: who may, when they change, how the league is chosen, and that it resumes."""

import numpy as np
import pytest
import torch

from hotlap.errors import ConfigError, StateError
from hotlap.hyperparameters import RaceSettings
from hotlap.learning.opponents import NamedDriver, Opponents
from hotlap.models.model_file import PolicyArrays, read_model
from hotlap.models.shipped_models import find_shipped

MODEL = read_model(find_shipped("generalist", "track-01"))
CPU = torch.device("cpu")
TRACKS = np.array([0, 1, 0, 1])  # of four races of three cars


def make(named=(), learners=(2, 1), **settings):
    """Opponents in four races; the second and the fourth have one car that learns, the others two."""
    chosen = RaceSettings(num_cars=3, learners=learners, opponents=("someone",), **settings)
    return Opponents(chosen, TRACKS, CPU, named, MODEL)


def policy(scale=1.0):
    return PolicyArrays({name: scale * array for name, array in MODEL.weights.items()}, MODEL.normalizer)


def league(**settings):
    found = make(league_size=2, league_interval=100, league_fraction=1.0, **settings)
    found.begin(5)
    found.renew(0, policy)
    return found


def test_the_first_cars_of_a_race_learn():
    assert make([NamedDriver("one", MODEL)]).learners.tolist() == [0, 1, 3, 6, 7, 9]


def test_a_driver_has_cars_on_its_own_tracks_only():
    opponents = make([NamedDriver("here", MODEL, frozenset({0})), NamedDriver("there", MODEL, frozenset({1}))])
    opponents.begin(1)
    # The cars that do not learn: one in races 0 and 2, two in 1 and 3.
    assert opponents._driver.tolist() == [0, 1, 1, 0, 1, 1]
    with pytest.raises(ConfigError, match="nobody drives the other cars"):
        make([NamedDriver("here", MODEL, frozenset({0}))])


def test_drivers_and_throttles_change_only_where_a_race_ended():
    opponents = make([NamedDriver("one", MODEL), NamedDriver("two", MODEL)], min_throttle=0.5)
    opponents.begin(1)
    before = opponents._throttle.clone()
    opponents._next_driver.fill_(1)
    opponents._next_throttle.fill_(0.25)
    drivers = opponents._driver.clone()
    opponents.note(torch.tensor([False, True, False, False]), torch.ones(4, 3, dtype=torch.int32))
    changed = torch.tensor([False, True, True, False, False, False])
    assert torch.equal(opponents._driver, torch.where(changed, 1, drivers))
    assert torch.equal(opponents._throttle, torch.where(changed, 0.25, before))


def test_only_their_own_cars_are_driven_and_the_throttle_has_its_limit():
    opponents = make([NamedDriver("one", MODEL)])
    opponents.begin(1)
    opponents._throttle.fill_(0.125)
    actions = torch.full((12, 3), 7.0)
    opponents.drive({"road": torch.rand(12, 90)}.__getitem__, actions)
    assert (actions[opponents.learners] == 7.0).all()
    others = actions[[2, 4, 5, 8, 10, 11]]
    assert (others[:, 1] <= 0.125).all()
    assert (others[:, 0].abs() <= 1.0).all()


def test_wins_are_counted_against_cars_that_learn():
    opponents = make([NamedDriver("one", MODEL)])
    opponents.begin(1)
    # Race 0: the other car wins against both that learn. Race 1: the one that learns wins against both others.
    positions = torch.tensor([[2, 3, 1], [1, 2, 3], [1, 2, 3], [1, 2, 3]])
    opponents.note(torch.tensor([True, True, False, False]), positions)
    assert opponents._counts.tolist() == [[2], [4]]
    assert opponents.win_rates().tolist() == [3 / 6]


def test_versions_that_still_win_are_drawn_more_often():
    opponents = league()
    opponents._counts.copy_(torch.tensor([[90, 0], [98, 98]]))
    drawn = []
    for _ in range(400):
        opponents._draw()
        drawn += opponents._next_driver.tolist()
    # Weights 0.1 + 91/100 against 0.1 + 1/100.
    assert np.mean(drawn) == pytest.approx(0.11 / (1.01 + 0.11), abs=0.02)


def test_a_version_leaves_when_no_race_has_it_and_the_present_policy_takes_its_place():
    opponents = league()
    opponents._driver.copy_(torch.tensor([0, 0, 1, 1, 1, 1]))
    opponents._counts.copy_(torch.tensor([[0, 50], [98, 98]]))
    before = opponents._nets[0].state_dict()["weight0"]
    opponents.renew(100, lambda: policy(0.5))
    assert (opponents._nets[0].state_dict()["weight0"] == before).all()  # two cars have it still
    assert (opponents._next_driver == 1).all()
    opponents._driver.fill_(1)
    opponents.renew(150, lambda: policy(0.5))
    assert (opponents._nets[0].state_dict()["weight0"] == 0.5 * before).all()
    assert opponents._counts.tolist() == [[0, 25], [0, 49]]


def test_a_saved_state_continues_with_the_same_draws():
    first, second = league(min_throttle=0.5), league(min_throttle=0.5)
    first._nets[1].load(policy(0.25))
    first.note(torch.tensor([True] * 4), torch.tensor([[1, 2, 3]] * 4))
    saved = first.state_dict()
    second.load_state_dict(saved)
    for one in (first, second):
        one.renew(10, policy)
    ours, theirs = first.state_dict(), second.state_dict()
    assert all((ours[name] == theirs[name]).all() for name in ours)
    assert torch.equal(first._next_driver, second._next_driver)


@pytest.mark.parametrize("name", ["opponents.driver", "opponents.version1.weight0"])
def test_a_state_of_other_races_is_refused(name):
    opponents = league()
    state = opponents.state_dict()
    state[name] = state[name][:-1]
    with pytest.raises(StateError, match=name):
        opponents.load_state_dict(state)
    state = opponents.state_dict()
    state["opponents.driver"] = state["opponents.driver"] + 9
    with pytest.raises(StateError, match="must be from 0 to 1"):
        opponents.load_state_dict(state)
