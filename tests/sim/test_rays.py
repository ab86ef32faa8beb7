"""Rays against two independent float64 oracles: intersection with all walls, and a walk from quad to quad."""

import numpy as np
import pytest

from hotlap.sim.rays import NUM_RAYS, RAY_RANGE_M
from hotlap.sim.ribbon import FAR_SPAN, Ribbons
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.node_builder import build_nodes
from sim.kernels import CAR, F, place_points, rays_on
from sim.worlds import BUILT_IN, World, drivable_area, nodes_of, oval

RANGE_M = float(RAY_RANGE_M)
CLOSE_M = 0.25
CLOSE_FRACTION = 0.999
LONGEST_PASS_M = 0.05


def corners(ribbons: Ribbons) -> tuple[np.ndarray, np.ndarray]:
    """Left and right wall points, (num_nodes, 2), float64."""
    loop = ribbons.portals[FAR_SPAN:-FAR_SPAN]
    return tuple(
        np.stack([loop[f"{side}_x"], loop[f"{side}_y"]], axis=1).astype(np.float64) for side in ("left", "right")
    )


def draw_rays(nodes: RibbonNodes, ribbons: Ribbons, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Nodes, origins and directions: anywhere a car can be, a third of them hard by a wall, half along the road."""
    rng = np.random.default_rng(seed)
    node = rng.integers(0, nodes.num_nodes, count)
    fraction = rng.uniform(0.0, 1.0, count).astype(F)
    after = (node + 1) % nodes.num_nodes
    side = rng.uniform(-1.0, 1.0, count)
    side = np.where(rng.random(count) < 1 / 3, np.sign(side), side)
    walls = np.where(
        side > 0,
        np.minimum(nodes.wall_left_m[node], nodes.wall_left_m[after]),
        np.minimum(nodes.wall_right_m[node], nodes.wall_right_m[after]),
    )
    left_m = (side * np.maximum(walls - CAR.radius_m, 0.0)).astype(F)
    x, y = np.zeros(count, F), np.zeros(count, F)
    place_points(ribbons, 0, node, fraction, left_m, x, y)
    along = np.arctan2(nodes.tangent_y[node], nodes.tangent_x[node])
    heading = np.where(rng.random(count) < 0.5, rng.uniform(-np.pi, np.pi, count), along + rng.normal(0.0, 0.15, count))
    return node, x, y, np.cos(heading).astype(F), np.sin(heading).astype(F)


def exact_among_all_walls(ribbons: Ribbons, x, y, dx, dy) -> np.ndarray:
    """Nearest hit with any wall segment of the whole track."""
    nearest = np.full(len(x), RANGE_M)
    starts = np.concatenate(corners(ribbons))
    hops = np.concatenate([np.roll(wall, -1, axis=0) - wall for wall in corners(ribbons)])
    for chunk in np.array_split(np.arange(len(x)), max(1, len(x) // 200)):
        ox, oy = x[chunk, None].astype(np.float64), y[chunk, None].astype(np.float64)
        ux, uy = dx[chunk, None].astype(np.float64), dy[chunk, None].astype(np.float64)
        px, py = starts[:, 0] - ox, starts[:, 1] - oy
        across = ux * hops[:, 1] - uy * hops[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = (px * hops[:, 1] - py * hops[:, 0]) / across
            fraction = (px * uy - py * ux) / across
        is_hit = (distance >= 0.0) & (fraction >= 0.0) & (fraction <= 1.0)
        nearest[chunk] = np.minimum(np.where(is_hit, distance, RANGE_M).min(axis=1), RANGE_M)
    return nearest


def exact_by_walking(ribbons: Ribbons, node: int, x, y, dx, dy) -> float:
    """The hit found by leaving quad after quad through the portal the ray crosses."""
    left, right = corners(ribbons)
    origin, direction = np.array([x, y], np.float64), np.array([dx, dy], np.float64)
    count = len(left)

    def hit(a: np.ndarray, b: np.ndarray) -> float | None:
        (px, py), (ex, ey) = a - origin, b - a
        across = direction[0] * ey - direction[1] * ex
        if across == 0.0:
            return None
        distance = (px * ey - py * ex) / across
        fraction = (px * direction[1] - py * direction[0]) / across
        return distance if distance >= 0.0 and 0.0 <= fraction <= 1.0 else None

    came_through = None
    while True:
        after = (node + 1) % count
        walls = [hit(left[node], left[after]), hit(right[node], right[after])]
        doors = {"ahead": hit(left[after], right[after]), "behind": hit(left[node], right[node])}
        ways = {way: met for way, met in doors.items() if met is not None and way != came_through}
        hits = [met for met in walls if met is not None]
        if hits or not ways:
            return min(*hits, RANGE_M) if hits else RANGE_M
        way, met = ways.popitem()
        if met > RANGE_M:
            return RANGE_M
        node = after if way == "ahead" else (node - 1) % count
        came_through = "behind" if way == "ahead" else "ahead"


def assert_rays_are_exact(name: str | int, count: int) -> None:
    nodes = nodes_of(name)
    ribbons = World([nodes]).ribbons
    node, x, y, dx, dy = draw_rays(nodes, ribbons, count, seed=1)
    cast_m = rays_on(ribbons, 0, node, x, y, dx, dy).astype(np.float64)
    exact_m = exact_among_all_walls(ribbons, x, y, dx, dy)
    error_m = cast_m - exact_m
    assert (np.abs(error_m) < CLOSE_M).mean() >= CLOSE_FRACTION, f"{name}: worst {np.abs(error_m).max()} m"
    assert error_m.max() < LONGEST_PASS_M, f"{name}: a ray went through a wall"


def seeds_without_touching_walls(first: int, count: int) -> list[int]:
    """Generated tracks whose walls do not touch, so that all walls can be tested at once."""
    found: list[int] = []
    seed = first
    while len(found) < count:
        try:
            drivable_area(nodes_of(seed))
            found.append(seed)
        except AssertionError:
            pass
        seed += 1
    return found


@pytest.mark.parametrize("name", BUILT_IN)
def test_rays_on_the_built_in_tracks_are_exact(name):
    assert_rays_are_exact(name, count=4000)


def test_rays_on_twenty_generated_tracks_are_exact():
    for seed in seeds_without_touching_walls(first=0, count=20):
        assert_rays_are_exact(seed, count=400)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rays_on_two_hundred_generated_tracks_are_exact():
    for seed in seeds_without_touching_walls(first=1000, count=200):
        assert_rays_are_exact(seed, count=1000)


def test_rays_on_an_overpass_see_their_own_level_only():
    nodes = nodes_of("eight")
    ribbons = World([nodes]).ribbons
    node, x, y, dx, dy = draw_rays(nodes, ribbons, 400, seed=2)
    cast_m = rays_on(ribbons, 0, node, x, y, dx, dy)
    own_m = [exact_by_walking(ribbons, int(node[i]), x[i], y[i], dx[i], dy[i]) for i in range(len(node))]
    assert cast_m == pytest.approx(own_m, abs=LONGEST_PASS_M)
    # The oracle that sees both levels stops many of them earlier.
    any_m = exact_among_all_walls(ribbons, x, y, dx, dy)
    assert (cast_m > any_m + 1.0).sum() > 20


def test_both_oracles_agree_where_there_is_one_level():
    nodes = nodes_of("track-03")
    ribbons = World([nodes]).ribbons
    node, x, y, dx, dy = draw_rays(nodes, ribbons, 150, seed=3)
    walked_m = [exact_by_walking(ribbons, int(node[i]), x[i], y[i], dx[i], dy[i]) for i in range(len(node))]
    assert exact_among_all_walls(ribbons, x, y, dx, dy) == pytest.approx(walked_m, abs=1e-6)


def test_a_ray_down_the_straight_meets_the_wall_of_the_bend_within_two_hundred_metres():
    ahead_m = [
        float(World([build_nodes(oval(straight_m))]).batch.obs[0, NUM_RAYS // 2]) * RANGE_M
        for straight_m in (300.0, 310.0, 330.0)
    ]
    # The outer wall is an arc of 60 + 12 m about a centre 150 m ahead and 60 m to the left.
    assert ahead_m[0] == pytest.approx(150.0 + np.sqrt(72.0**2 - 60.0**2), abs=0.05)
    assert ahead_m[1] < 0.99 * RANGE_M
    assert ahead_m[2] == RANGE_M


@pytest.mark.parametrize("turn_rad", [0.0, 0.2, np.pi])
def test_the_nine_rays_look_from_the_cars_right_to_its_left(turn_rad):
    world = World([nodes_of("oval")])
    world.put(arc_m=0.5, left_m=2.0, turn_rad=turn_rad)
    world.step([0.0, 0.0, 0.0])
    rays_m = world.batch.obs[0, :NUM_RAYS] * RANGE_M
    # On the straight the walls are 12 m from the middle, so 14 m to the right of the car and 10 m to the left.
    sines = np.sin(turn_rad + np.radians(-90.0 + 22.5 * np.arange(NUM_RAYS)))
    aside = np.abs(sines) > 0.01
    expected_m = np.where(sines < 0.0, 14.0, 10.0)[aside] / np.abs(sines[aside])
    assert rays_m[aside] == pytest.approx(expected_m, rel=1e-3)


@pytest.mark.parametrize("left_m", [0.0, 2.0])
@pytest.mark.parametrize("name", BUILT_IN)
def test_from_every_node_the_rays_straight_to_the_sides_reach_the_walls(name, left_m):
    nodes = nodes_of(name)
    ribbons = World([nodes]).ribbons
    node = np.arange(nodes.num_nodes)
    x, y = np.zeros(nodes.num_nodes, F), np.zeros(nodes.num_nodes, F)
    place_points(ribbons, 0, node, np.zeros(nodes.num_nodes, F), np.full(nodes.num_nodes, left_m, F), x, y)
    normal_x, normal_y = -ribbons.nodes["tangent_y"], ribbons.nodes["tangent_x"]
    assert rays_on(ribbons, 0, node, x, y, normal_x, normal_y) == pytest.approx(nodes.wall_left_m - left_m, abs=0.01)
    assert rays_on(ribbons, 0, node, x, y, -normal_x, -normal_y) == pytest.approx(nodes.wall_right_m + left_m, abs=0.01)
