"""`Eyes`: the casual driver among other cars: it follows, waits, and passes where there is room."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.race_fleet import RaceFleet
from hotlap.sim.vehicle import TICK_S

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EyeHabits:
    """How the casual driver behaves among others."""

    sight_m: float = 45.0  # along the road
    beside_m: float = 7.0  # a car this near along the road is beside: one does not move over
    clearance_m: float = 2.9  # between the centres of two cars side by side
    edge_m: float = 1.2  # from the road's edge to the car's centre,
    bend_edge_m: float = 1.8  # and as much more in a bend
    follow_m: float = 7.0  # distance to the car ahead, between centres
    follow_s: float = 0.12  # and this time at one's own speed
    follow_per_s: float = 0.9  # how eagerly the distance is kept
    creep_mps: float = 3.0  # around a car that stands
    keen_mps: float = 0.3  # passes whoever is this much slower than it could be
    move_mps: float = 2.2  # speed across the road on a straight
    bend_radpm: float = 0.02  # a bend as sharp as this: it moves across at a third of that
    settle_mps: float = 1.0  # back to the middle when there is nobody
    drift_per_m: float = 0.15  # slower by this fraction for each metre beyond where it means to drive,
    max_drift: float = 0.3  # at most
    grass_mps: float = 0.8  # off the road it gains speed this gently
    lost_cosine: float = 0.8  # of the angle to the road's direction: a car that points further away is lost,
    lost_mps: float = 3.5  # turns this slowly
    turn_m: float = 5.5  # on a circle of this radius
    runoff_m: float = 4.0  # beside the road
    standing_mps: float = 1.0  # a car this slow stands: one may leave the road to pass it,
    around_m: float = 1.0  # by this much
    patience_s: float = 8.8  # how long it waits behind a car that stands, before it
    crawl_mps: float = 2.2  # goes on however near that is


class Eyes:
    """Looks after the cars `rows` of races: where across the road each should drive, and how fast at most."""

    def __init__(self, fleet: RaceFleet, rows: NDArray[np.int64], habits: EyeHabits | None = None) -> None:
        self._fleet, self._rows = fleet, rows
        self._habits = habits or EyeHabits()
        self._race, self._car = rows // fleet.cars_per_race, rows % fleet.cars_per_race
        self.offset_m: Floats = fleet.states["lateral_m"][rows].astype(np.float64)
        self.lock = np.zeros(len(rows))  # full lock of a lost car: 1 right, -1 left; 0 for a car that is not lost
        self._side = np.zeros(len(rows))  # on which side it is about to pass: 1 left, -1 right
        self._waited_s = np.zeros(len(rows))  # behind a car that stands

    def look(self, target_mps: Floats, curvature_radpm: Floats) -> Floats:
        """Move `offset_m` by a tick's worth; returns the highest speed, at most the target, for every car.

        `curvature_radpm` is that of the sharpest bend just ahead.
        """
        habits = self._habits
        gap_m, across_m, speed_mps, is_there = self._see()
        own_m, own_mps = self._own("lateral_m"), self._speeds()[self._rows]
        ahead = is_there & (gap_m > 0.0) & (gap_m < habits.sight_m)
        in_way = ahead & (np.abs(across_m - own_m[:, None]) < habits.clearance_m)
        blocked_m = np.where(in_way, gap_m, np.inf)
        blocker, rows = blocked_m.argmin(axis=1), np.arange(len(own_m))
        has_blocker = np.isfinite(blocked_m[rows, blocker])
        their_m, their_mps = across_m[rows, blocker], speed_mps[rows, blocker]
        distance_m = np.where(has_blocker, blocked_m[rows, blocker], habits.sight_m)

        edges_m = self._edges()
        margin_m = habits.edge_m + habits.bend_edge_m * np.minimum(np.abs(curvature_radpm) / habits.bend_radpm, 1.0)
        is_standing = has_blocker & (their_mps < habits.standing_mps)
        narrow_m = np.abs(their_m) + np.where(their_m > 0.0, edges_m[1], edges_m[0]) - margin_m - habits.clearance_m
        margin_m = np.where(is_standing & (narrow_m <= 0.0), -habits.around_m, margin_m)
        left_m, right_m = (np.maximum(edge_m - margin_m, 0.0) for edge_m in edges_m)
        wanted_m = self._pass(has_blocker & (target_mps > their_mps + habits.keen_mps), their_m, left_m, right_m)
        wanted_m = self._keep_clear(wanted_m, own_m, gap_m, across_m, is_there)
        wanted_m = np.clip(wanted_m, -right_m, left_m)
        calm = 1.0 / (1.0 + 2.0 * np.abs(curvature_radpm) / habits.bend_radpm)
        move_m = np.where((self._side != 0.0) | has_blocker, habits.move_mps, habits.settle_mps) * calm * float(TICK_S)
        self.offset_m += np.clip(wanted_m - self.offset_m, -move_m, move_m)
        # The inside of a bend is sharper than its middle.
        target_mps = target_mps * np.sqrt(np.clip(1.0 - curvature_radpm * self.offset_m, 0.5, 1.0))
        target_mps = self._stay_on_road(target_mps, own_m, own_mps, edges_m)

        apart_m = np.abs(their_m - own_m)
        keep_m = habits.follow_m + habits.follow_s * own_mps
        allowed_mps = their_mps + habits.follow_per_s * (distance_m - keep_m)
        may_creep = (self._side != 0.0) & (distance_m > habits.beside_m - 1.0)
        allowed_mps = np.maximum(allowed_mps, np.where(may_creep, habits.creep_mps, 0.0))
        is_held = has_blocker & (apart_m < 0.85 * habits.clearance_m)
        waits = is_held & is_standing & (own_mps < habits.standing_mps)
        self._waited_s = np.where(
            waits, self._waited_s + float(TICK_S), np.maximum(self._waited_s - float(TICK_S), 0.0)
        )
        allowed_mps = np.where(
            self._waited_s > habits.patience_s, np.maximum(allowed_mps, habits.crawl_mps), allowed_mps
        )
        target_mps = np.where(is_held, np.minimum(target_mps, allowed_mps), target_mps)
        self._find_way(own_m, own_mps, edges_m)
        return np.where(self.lock != 0.0, habits.lost_mps, target_mps)

    def _stay_on_road(
        self, target_mps: Floats, own_m: Floats, own_mps: Floats, edges_m: tuple[Floats, Floats]
    ) -> Floats:
        """Slower the further it drifts towards the grass; on it, no more than a little faster than now."""
        habits = self._habits
        out_m = np.abs(own_m) - np.where(own_m > 0.0, *edges_m)
        drift = np.clip(habits.drift_per_m * (out_m + habits.edge_m), 0.0, habits.max_drift)
        target_mps = target_mps * (1.0 - drift)
        gentle_mps = np.maximum(own_mps + habits.grass_mps, habits.lost_mps)
        return np.where(out_m > 0.0, np.minimum(target_mps, gentle_mps), target_mps)

    def _find_way(self, own_m: Floats, own_mps: Floats, edges_m: tuple[Floats, Floats]) -> None:
        """Turn a car that points away from the road's direction: the short way, or backwards where a wall is near."""
        habits = self._habits
        nodes, at = self._fleet.scenario.ribbons.nodes, self._nodes()
        yaw_rad = self._own("yaw_rad")
        along_x, along_y = nodes["tangent_x"][at].astype(np.float64), nodes["tangent_y"][at].astype(np.float64)
        ahead = along_x * np.cos(yaw_rad) + along_y * np.sin(yaw_rad)
        leftward = along_x * np.sin(yaw_rad) - along_y * np.cos(yaw_rad)
        facing = np.where(leftward > 0.0, 1.0, -1.0)
        room_m = np.where(facing > 0.0, *edges_m) - facing * own_m + habits.runoff_m
        has_room = (ahead > 0.0) | (habits.turn_m * (1.0 - ahead) < room_m)
        is_turning = (self.lock != 0.0) & (ahead < 0.0) & (own_mps >= habits.standing_mps)
        lock = np.where(is_turning, self.lock, np.where(has_room, facing, -facing))
        self.lock = np.where(ahead < habits.lost_cosine, lock, 0.0)

    def _see(self) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Of every car of the race, for each own car: gap, place across the road, speed, and if it is there."""
        poses = self._fleet.field.poses.reshape(self._fleet.num_races, -1)
        arc_m = poses["arc_m"].astype(np.float64)[self._race]
        length_m = self._fleet.lap_lengths_m[self._rows].astype(np.float64)[:, None]
        own_m = arc_m[np.arange(len(self._rows)), self._car][:, None]
        gap_m = (arc_m - own_m + 0.5 * length_m) % length_m - 0.5 * length_m
        is_there = poses["on_road"][self._race] != 0
        is_there[np.arange(len(self._rows)), self._car] = False
        speeds = self._speeds().reshape(self._fleet.num_races, -1)[self._race]
        return gap_m, poses["lateral_m"].astype(np.float64)[self._race], speeds, is_there

    def _speeds(self) -> Floats:
        poses = self._fleet.field.poses
        speeds_mps: Floats = np.hypot(poses["vx_mps"].astype(np.float64), poses["vy_mps"])
        return speeds_mps

    def _own(self, column: str) -> Floats:
        values: Floats = self._fleet.states[column][self._rows].astype(np.float64)
        return values

    def _nodes(self) -> NDArray[np.int64]:
        """The node of the road where each car is."""
        states = self._fleet.states[self._rows]
        nodes: NDArray[np.int64] = self._fleet.scenario.ribbons.tracks["first_node"][states["track"]] + states["node"]
        return nodes

    def _edges(self) -> tuple[Floats, Floats]:
        """How far left and right of the middle the road ends where each car is."""
        nodes, at = self._fleet.scenario.ribbons.nodes, self._nodes()
        return nodes["road_left_m"][at].astype(np.float64), nodes["road_right_m"][at].astype(np.float64)

    def _pass(self, is_keen: NDArray[np.bool_], their_m: Floats, left_m: Floats, right_m: Floats) -> Floats:
        """Where to drive: beside the car in the way, on the side with more room, else in the middle.

        A side once chosen is kept while there is room on it.
        """
        clearance_m = self._habits.clearance_m
        room_left, room_right = left_m - (their_m + clearance_m), right_m + (their_m - clearance_m)
        better = np.where(room_left > room_right, 1.0, -1.0)
        kept = np.where(self._side > 0.0, room_left, room_right)
        side = np.where((self._side != 0.0) & (kept > 0.0), self._side, better)
        has_room = np.maximum(room_left, room_right) > 0.0
        self._side = np.where(is_keen & has_room, side, 0.0)
        return np.where(self._side != 0.0, their_m + self._side * clearance_m, 0.0)

    def _keep_clear(
        self, wanted_m: Floats, own_m: Floats, gap_m: Floats, across_m: Floats, is_there: NDArray[np.bool_]
    ) -> Floats:
        """Do not move into a car beside."""
        beside = is_there & (np.abs(gap_m) < self._habits.beside_m)
        on_left = beside & (across_m > own_m[:, None])
        on_right = beside & ~on_left
        highest_m = np.where(on_left, across_m - self._habits.clearance_m, np.inf).min(axis=1)
        lowest_m = np.where(on_right, across_m + self._habits.clearance_m, -np.inf).max(axis=1)
        is_between = lowest_m > highest_m  # too near to both
        middle_m = 0.5 * (np.where(is_between, lowest_m, 0.0) + np.where(is_between, highest_m, 0.0))
        return np.where(is_between, middle_m, np.minimum(np.maximum(wanted_m, lowest_m), highest_m))


def open_eyes(fleet: object) -> Eyes | None:
    """Eyes for cars that are in races (they have a `race_fleet` and their `rows` of it); None for cars alone."""
    race_fleet = getattr(fleet, "race_fleet", None)
    return None if race_fleet is None or race_fleet.cars_per_race == 1 else Eyes(race_fleet, fleet.rows)  # type: ignore[attr-defined]
