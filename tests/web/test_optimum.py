"""Optimal laps solved in processes: order, progress, failures; the solver is a script here."""

import sys
import time

import pytest

from hotlap.tracks.registry import load_track
from hotlap.web.optimum import MAX_WAITING, OptimumJobs, SolverBusyError, SolverJob

SOLVER = """
import json, sys, time
track, path = sys.argv[1:]
print("not a stage")
print(json.dumps({"from": 0.2, "to": 0.6, "message": "solving " + track}), flush=True)
time.sleep(float(%r))
if track == "train-001":
    sys.exit("the solver found no lap: it is too twisty")
open(path, "wb").write(track.encode())
"""


@pytest.fixture
def make_jobs():
    made = []

    def make(seconds: float = 0.0):
        solved = []
        command = (sys.executable, "-c", SOLVER % seconds)
        jobs = OptimumJobs(lambda track_id, replay: solved.append((track_id, replay)), command)
        made.append(jobs)
        return jobs, solved

    yield make
    for jobs in made:
        jobs.close()


def wait_for_state(jobs, track, *states):
    deadline_s = time.monotonic() + 30.0
    while (answer := jobs.describe(track, None))["state"] not in states:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    return answer


def job_state(jobs, track):
    return next(job.state for (track_id, _), job in jobs._jobs.items() if track_id == track.track_id)


def test_laps_are_solved_one_after_the_other_and_handed_over(make_jobs):
    jobs, solved = make_jobs()
    tracks = [load_track("train-000"), load_track("train-002")]
    for track in tracks:
        jobs.start(track)
    deadline_s = time.monotonic() + 30.0
    while len(solved) < 2:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert solved == [("train-000", b"train-000"), ("train-002", b"train-002")]


def test_a_failure_says_why_and_can_be_tried_again(make_jobs, monkeypatch):
    monkeypatch.setattr("hotlap.web.optimum.find_reference", lambda track: None)
    jobs, solved = make_jobs()
    track = load_track("train-001")
    assert jobs.describe(track, None)["state"] == "none"
    jobs.start(track)
    answer = wait_for_state(jobs, track, "failed")
    assert answer["message"] == "the solver found no lap: it is too twisty"
    jobs.start(track)
    assert job_state(jobs, track) in ("waiting", "solving")
    assert solved == []


def test_progress_grows_within_a_stage_and_never_beyond_it():
    job = SolverJob("x", 1000.0, "solving", (0.2, 0.6), 100.0)
    fractions = [job.progress(100.0 + seconds) for seconds in (0.0, 1.0, 10.0, 1000.0)]
    assert fractions[0] == pytest.approx(0.2)
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(0.6)


def test_not_more_laps_wait_than_may_and_closing_stops_the_solver(make_jobs, monkeypatch):
    monkeypatch.setattr("hotlap.web.optimum.find_reference", lambda track: None)
    jobs, solved = make_jobs(60.0)
    first = load_track("train-000")
    jobs.start(first)
    answer = wait_for_state(jobs, first, "solving")
    jobs.start(first)  # under way already: no second job
    assert len(jobs._queue) == 0
    for number in range(MAX_WAITING):
        jobs.start(load_track(f"train-{number + 2:03d}"))
    with pytest.raises(SolverBusyError, match="4 laps are waiting"):
        jobs.start(load_track("train-010"))
    assert answer["progress"] < 1.0
    began_s = time.monotonic()
    jobs.close()
    assert time.monotonic() - began_s < 10.0
    assert solved == []


def test_a_known_lap_is_solved_from_the_start(make_jobs):
    jobs, _ = make_jobs()
    answer = jobs.describe(load_track("track-01"), "a-url")
    assert (answer["state"], answer["progress"], answer["replay"]) == ("solved", 1.0, "a-url")
    assert answer["lap_time_sec"] == pytest.approx(28.31, abs=0.01)
