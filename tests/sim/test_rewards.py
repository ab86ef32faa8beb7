"""The six reward terms, each by hand."""

import numpy as np
import pytest

from sim.kernels import CAR, F, terms_of
from sim.worlds import World, make_rules, nodes_of

TERMS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")
PENALTIES = {"wall": -0.25, "off_track": -0.125, "backward": -0.0625, "stillness": -0.03125}
WEIGHTS = {"progress": 2.0, "speed_bonus": 0.5} | {f"{name}_penalty": value for name, value in PENALTIES.items()}


def terms(moved=0.0, speed=0.0, is_still=False, pays_for_wall=False, pays_for_edge=False) -> dict[str, float]:
    out = np.zeros(6, F)
    terms_of(make_rules(**WEIGHTS), F(moved), F(speed), is_still, pays_for_wall, pays_for_edge, out)
    return dict(zip(TERMS, out.tolist(), strict=True))


@pytest.mark.parametrize(
    ("tick", "expected"),
    [
        ({}, {}),
        ({"moved": 0.5}, {"progress": 1.0}),
        ({"moved": -0.25}, {"progress": -0.5, "backward": -0.0625}),
        ({"speed": 0.75}, {"speed": 0.375}),
        ({"pays_for_wall": True}, {"wall": -0.25}),
        ({"pays_for_edge": True}, {"offTrack": -0.125}),
        ({"is_still": True}, {"stillness": -0.03125}),
        (
            {"moved": 0.5, "speed": 1.0, "is_still": True, "pays_for_wall": True, "pays_for_edge": True},
            {"progress": 1.0, "speed": 0.5, "wall": -0.25, "offTrack": -0.125, "stillness": -0.03125},
        ),
    ],
)
def test_each_term_is_its_weight_times_what_happened(tick, expected):
    assert terms(**tick) == dict.fromkeys(TERMS, 0.0) | expected


def test_the_terms_sum_to_the_reward_whatever_happens():
    rng = np.random.default_rng(4)
    world = World([nodes_of("track-01"), nodes_of("track-03")], num_cars=16, start=1, **WEIGHTS)
    # Every other car starts the wrong way round.
    world.states["yaw_rad"][::2] = np.angle(np.exp(1j * (world.states["yaw_rad"][::2] + np.pi)))
    seen = dict.fromkeys(TERMS, 0)
    for _ in range(1500):
        world.step(rng.uniform([-1.0, 0.0, 0.0], [1.0, 1.0, 0.4], (16, 3)))
        total = np.zeros(16, F)
        for name in TERMS:
            total += world.infos[name]
            seen[name] += int((world.infos[name] != 0.0).sum())
        assert np.array_equal(total, world.batch.rewards)
    assert min(seen.values()) > 0


def test_a_lap_earns_one_unit_of_progress_whatever_the_line():
    nodes = nodes_of("oval")
    world = World([nodes])
    earned = 0.0
    for left_m in (3.0, -3.0):
        for arc_m in np.arange(0.0, nodes.length_m, 0.5 * nodes.step_m):
            world.put(arc_m=float(arc_m), left_m=left_m, speed_mps=20.0)
            before = float(world.states["arc_m"][0])
            world.step([0.0, 0.0, 0.0])
            gained = (float(world.states["arc_m"][0]) - before + nodes.length_m / 2) % nodes.length_m
            assert world.infos["progress"][0] == pytest.approx((gained - nodes.length_m / 2) / nodes.length_m, abs=1e-6)
    world = World([nodes])
    world.put(arc_m=nodes.length_m - 1.0, speed_mps=30.0)
    for _ in range(4):
        world.step([0.0, 0.0, 0.0])
        earned += float(world.infos["progress"][0])
    # Two metres over the line: forward progress, not a lap lost.
    assert earned == pytest.approx(4 * 0.5 / nodes.length_m, rel=0.02)


def test_the_speed_bonus_is_a_fraction_of_the_top_speed():
    world = World([nodes_of("oval")], speed_bonus=0.5)
    world.put(arc_m=10.0, speed_mps=30.0)
    world.step([0.0, 0.0, 0.0])
    assert world.infos["speed"][0] == pytest.approx(0.5 * world.infos["rawSpeed"][0] / CAR.top_speed_mps, rel=1e-5)


def test_a_standing_car_is_still_and_ends_its_episode_after_the_timeout_until_it_moves_on():
    world = World([nodes_of("oval")], stillness_timeout_ticks=180)
    for tick in range(1, 181):
        world.step([0.0, 0.0, 1.0])
        assert world.infos["stillness"][0] == F(-0.001)
        assert world.infos["stillnessCounter"][0] == tick
        assert bool(world.batch.terminated[0]) == (tick == 180)
    world.put(arc_m=5.0, speed_mps=3.0)
    world.step([0.0, 0.0, 0.0])
    assert world.infos["stillnessCounter"][0] == 0
    assert world.infos["stillness"][0] == 0.0
