"""Where random starts fail: cars that stop at a known place, and cars that leave the road."""

import numpy as np
import pytest

from evaluation.reflex import Interpreted, Reflex
from hotlap.drivers.casual import CasualDriver
from hotlap.evaluation import evaluate as evaluate_module
from hotlap.evaluation.evaluate import evaluate
from hotlap.evaluation.failures import Failures, find_failures
from hotlap.tracks.registry import load_track


@pytest.fixture(autouse=True)
def soon_stuck(monkeypatch):
    monkeypatch.setattr(evaluate_module, "STUCK_AFTER_S", 12)


@pytest.fixture
def track():
    return load_track("track-01")


class Stopping(CasualDriver):
    """The casual driver, which stops where it comes beyond 300 m."""

    def act(self, obs):
        action = super().act(obs)
        action[(self._fleet.states["arc_m"] > 300.0) & (self._fleet.states["arc_m"] < 400.0)] = (0.0, 0.0, 1.0)
        return action


def test_cars_that_stop_are_found_where_they_stop(track):
    driver = Stopping()
    found = evaluate(driver, track, episodes=4, start="random")
    assert (found.completion_rate, found.failed_cars) == (0.0, (0, 1, 2, 3))
    failures = find_failures(driver, track, found)
    assert failures.left_road == ()
    assert len(failures.stopped) == 4
    for place in failures.stopped:
        node = round(place.arc_m / track.nodes.step_m)
        assert 300.0 < place.arc_m < 400.0
        assert np.hypot(place.x_m - track.nodes.x_m[node], place.y_m - track.nodes.y_m[node]) < 6.0


def test_cars_leave_the_road_at_its_edge_and_the_same_driver_in_either_loop_fails_at_the_same_places(track):
    driver = Reflex()
    found = evaluate(driver, track, episodes=12, start="random", seed=5)
    failures = find_failures(driver, track, found)
    assert found.completion_rate == 10 / 12
    assert (len(found.failed_cars), len(failures.stopped), len(failures.left_road)) == (2, 2, 1)
    assert failures == find_failures(Interpreted(driver), track, found)
    for place in failures.left_road:
        node = round(place.arc_m / track.nodes.step_m) % track.nodes.num_nodes
        away_m = np.hypot(place.x_m - track.nodes.x_m[node], place.y_m - track.nodes.y_m[node])
        # The car's side is at the edge or beyond, and not by more than it moves in a tick.
        half_m = float(min(track.nodes.road_left_m[node], track.nodes.road_right_m[node]))
        assert half_m - 1.5 < away_m < half_m + 1.5


def test_nothing_is_driven_again_where_no_start_failed(track, monkeypatch):
    found = evaluate(CasualDriver(), track, episodes=2, start="random")
    monkeypatch.setattr("hotlap.evaluation.failures.drive", lambda *_, **__: pytest.fail("it drove"))
    assert find_failures(CasualDriver(), track, found) == Failures()
