"""The tool that improves a driver by the derivative of the simulator: its cars against the simulator's."""

import copy

import numpy as np
import pytest
import torch

import gradient_driver
import gradient_learner
from differentiable_car import (
    STATE_COLUMNS,
    Roads,
    drive_tick,
    place_cars,
    road_room,
    standard_car,
    view_road,
)
from gradient_cars import Group, Segment
from gradient_learner import MAX_SLOPE, Learner, calm, limited
from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet, make_engine
from hotlap.envs.settings import EpisodeRules, RacerSettings
from hotlap.evaluation.evaluate import evaluate
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import SHIPPED_FOLDER
from hotlap.sim.rays import NUM_RAYS
from hotlap.sim.road_view import NUM_POINTS, NUM_POINTS_2
from hotlap.sim.world import NUM_OBSERVATIONS, OBS_OFFSET, OBS_SPEED

CHAMPION, GENERALIST = SHIPPED_FOLDER / "track-01.zip", SHIPPED_FOLDER / "generalist.zip"
NUM_CARS = 32
SMALL = ["--cars=4", "--decisions=3", "--updates=2", "--critic-first=0"]


def some_fleet(observation="road-2", spun_fraction=0.0) -> Fleet:
    settings = RacerSettings(episode=EpisodeRules(start="random", spun_fraction=spun_fraction))
    fleet = Fleet(["track-01", "track-03"], settings, NUM_CARS, make_engine(NUM_CARS), observation)
    fleet.seed(np.arange(NUM_CARS, dtype=np.uint64))
    fleet.reset()
    return fleet


def roads_of(fleet: Fleet) -> Roads:
    roads = Roads.of(fleet.scenario.ribbons, torch.device("cpu"))
    return roads.on(torch.as_tensor(fleet.states["track"].astype(np.int64)))


@pytest.mark.parametrize("spun_fraction", [0.0, 1.0], ids=["on the road", "spun"])
def test_a_car_drives_as_the_simulators_does(spun_fraction):
    fleet = some_fleet(spun_fraction=spun_fraction)
    roads, rng = roads_of(fleet), np.random.default_rng(1)
    actions = rng.uniform([-0.4, 0.0, 0.0], [0.4, 1.0, 0.6], (NUM_CARS, 3)).astype(np.float32)
    command = torch.as_tensor(actions).unbind(1)
    state, has_touched = place_cars(fleet.states, roads), np.zeros(NUM_CARS, np.bool_)
    for _ in range(12):
        state, _ = drive_tick(state, command, roads.at(state[:, 0]), standard_car())
        fleet.step(actions, autoreset=False)
        has_touched |= fleet.batch.infos["wallContact"]
    expected, is_far = place_cars(fleet.states, roads), road_room(state, roads.at(state[:, 0])).abs().numpy() > 0.05
    alike = is_far & ~has_touched  # at the edge a millimetre decides what the surface is
    assert alike.sum() >= NUM_CARS // 2
    difference = (state - expected)[torch.as_tensor(alike)].abs().amax(0)
    length_m = (roads.num_nodes * roads.step_m)[torch.as_tensor(alike)]
    apart_m = (state - expected)[torch.as_tensor(alike), 0]
    difference[0] = (apart_m - torch.round(apart_m / length_m) * length_m).abs().max()
    limits = (0.05, 0.05, 0.02, 0.02, 0.02, 0.02, 1e-4, 1e-4, 1e-4, 20.0)
    for name, found, limit in zip(STATE_COLUMNS, difference.tolist(), limits, strict=True):
        assert found < limit, name


@pytest.mark.parametrize(("observation", "num_points"), [("road", NUM_POINTS), ("road-2", NUM_POINTS_2)])
def test_it_sees_what_the_simulators_car_sees(observation, num_points):
    fleet = some_fleet(observation, spun_fraction=0.25)
    roads = roads_of(fleet)
    motion, view = view_road(place_cars(fleet.states, roads), roads, num_points, standard_car())
    obs = fleet.batch.obs
    np.testing.assert_allclose(torch.stack(motion, 1).numpy(), obs[:, OBS_SPEED : OBS_SPEED + 3], atol=1e-3)
    np.testing.assert_allclose(view.numpy(), obs[:, NUM_OBSERVATIONS:], atol=2e-3)


def small_group(path=CHAMPION, num_cars=8, decisions=4, noise=0.0):
    model = read_model(path)
    driver = PackedDriver.from_model(model)
    group = Group(driver, ["track-01"], num_cars, 0.0)
    group.begin(np.random.default_rng(3))
    learner = Learner(model, driver, 1e-4, 0.4, 0.2)
    noises = noise * torch.randn(decisions, num_cars, learner.num_axes, generator=torch.Generator().manual_seed(1))
    return learner, group, group.drive(learner.numbers(), noises)


@pytest.mark.parametrize("path", [CHAMPION, GENERALIST], ids=["champion", "generalist"])
def test_the_second_drive_ends_where_the_first_did(path):
    learner, group, segment = small_group(path, decisions=15, noise=0.02)
    state = place_cars(segment.states, group.roads)
    with torch.no_grad():
        for walls, noise in zip(segment.walls[:-1], segment.noise, strict=True):
            command = learner._command(learner.policy(learner._inputs(state, group, walls)), noise)
            state, _ = learner._drive_decision(state, command, group)
    expected = place_cars(group.fleet.states, group.roads)
    assert not segment.has_touched.any()
    assert (state - expected)[:, :2].abs().max() < 0.1
    assert (state - expected)[:, 3].abs().max() < 0.05


def test_the_derivative_is_that_of_differences(monkeypatch):
    monkeypatch.setattr(gradient_learner, "limited", torch.clamp)  # of what is outside, the tool's is not a derivative
    learner, group, segment = small_group()

    def gained(change: float) -> float:
        moved = copy.deepcopy(learner)
        with torch.no_grad():
            moved.policy[-1].bias[1] += change  # of throttle and brake
            return float(moved._drive_again(group, segment)[0].double().mean())

    found, *_ = learner._drive_again(group, segment)
    torch.autograd.backward(found.mean())
    expected = (gained(0.01) - gained(-0.01)) / 0.02
    assert float(learner.policy[-1].bias.grad[1]) == pytest.approx(expected, rel=0.1, abs=1e-5)
    assert expected > 0.0  # the cars begin slower than they can be


def test_a_clipped_value_comes_back_and_goes_no_further():
    value = torch.tensor([-2.0, 0.5, 2.0], requires_grad=True)
    for slope, passed in ((1.0, [0.0, 1.0, 1.0]), (-1.0, [-1.0, -1.0, 0.0])):
        value.grad = None
        found = limited(value, 0.0, 1.0)
        assert found.tolist() == [0.0, 0.5, 1.0]
        torch.autograd.backward((found * slope).sum())
        assert value.grad.tolist() == passed


def test_the_derivative_of_one_car_is_limited_and_that_of_others_stays():
    slopes = torch.zeros(2, len(STATE_COLUMNS))
    slopes[0, 0], slopes[1, 0] = 100.0, 0.1
    calmed = calm(slopes)
    assert calmed[0, 0] == pytest.approx(MAX_SLOPE / 2)
    assert calmed[1, 0] == pytest.approx(0.1)
    assert calm(torch.full((1, len(STATE_COLUMNS)), np.nan)).abs().max() == 0.0


def test_a_car_that_touched_a_wall_counts_no_further():
    learner, group, segment = small_group()
    touched = segment.has_touched.clone()
    touched[1, 0] = True
    _, _, rewards, is_counted, _ = learner._drive_again(
        group, Segment(segment.states, segment.walls, segment.noise, touched)
    )
    assert is_counted[:, 0].tolist() == [True, True, False, False, False]
    assert (rewards[2:, 0] == 0.0).all()
    assert (rewards[:, 1:] != 0.0).all()


def test_what_is_seen_of_walls_is_the_simulators():
    _, group, segment = small_group()
    obs = group.fleet.batch.obs
    np.testing.assert_array_equal(segment.walls[-1, :, :NUM_RAYS].numpy(), obs[:, :NUM_RAYS])
    np.testing.assert_array_equal(segment.walls[-1, :, NUM_RAYS].numpy(), obs[:, OBS_OFFSET])


def test_cars_start_again_where_others_were_before_they_left_the_road(monkeypatch):
    monkeypatch.setattr("gradient_cars.MIN_HARD", 1)
    learner, group, _ = small_group()
    rng, numbers = np.random.default_rng(1), learner.numbers()
    off = torch.zeros(45, 8, learner.num_axes)
    off[:, 0] = torch.tensor([-2.0, 2.0])  # the first car turns to the left at full throttle
    group.renew(0.0, 0.0, rng)
    before = group.fleet.states[0].copy()
    segment = group.drive(numbers, torch.zeros(15, 8, learner.num_axes))
    assert segment.states[0] == before
    group.renew(0.0, 0.0, rng)
    group.drive(numbers, off)
    group.renew(0.0, 1.0, rng)
    for name in ("x_m", "y_m", "forward_mps", "steer"):
        assert (group.fleet.states[name] == before[name]).all(), name
    after = group.drive(numbers, torch.zeros(15, 8, learner.num_axes))
    np.testing.assert_array_equal(after.walls[0].numpy(), np.tile(segment.walls[0, 0].numpy(), (8, 1)))


def test_the_same_seed_gives_the_same_model(tmp_path):
    weights = []
    for name in ("one.zip", "two.zip"):
        assert gradient_driver.main([str(tmp_path / name), str(CHAMPION), "--tracks", "track-01", *SMALL]) == 0
        weights.append(read_model(tmp_path / name).weights)
    given = read_model(CHAMPION).weights
    for name, first in weights[0].items():
        np.testing.assert_array_equal(first, weights[1][name])
        assert first.shape == given[name].shape
    assert (weights[0]["mlp_extractor.policy_net.0.weight"] != given["mlp_extractor.policy_net.0.weight"]).any()


def test_random_weights_take_the_place_of_the_models():
    learner, *_ = small_group()
    before = [weight.clone() for weight in learner.policy.parameters()]
    learner.forget()
    for old, new, kept in zip(before, learner.policy.parameters(), learner.averaged.parameters(), strict=True):
        assert not torch.equal(old, new)
        assert torch.equal(kept, new)
    axes = learner.policy(torch.zeros(1, 90))
    assert axes.flatten().tolist() == pytest.approx([0.0, gradient_learner.FIRST_THROTTLE])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.zip", "--tracks", "track-01"], "missing.zip"),
        ([str(CHAMPION), "--tracks", "no-such-track"], "no-such-track"),
    ],
)
def test_bad_input_gets_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gradient_driver.main(["out.zip", *arguments, *SMALL]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_new_policy_completes_clean_laps_from_every_start_after_one_and_a_half_million_decisions(tmp_path):
    out = tmp_path / "out.zip"
    options = ["--new", "--cars=192", "--updates=260", "--rate=1e-3", "--critic-first=0", "--spun=0.02", "--hard=0.02"]
    assert gradient_driver.main([str(out), str(GENERALIST), "--tracks", "track-01", *options]) == 0
    found = evaluate(PackedDriver.from_model(read_model(out)), "track-01", episodes=50, start="random", seed=777)
    assert found.completion_rate == 1.0
    assert found.clean_lap_rate > 0.9
    assert found.median_lap_time_sec < 37.0
