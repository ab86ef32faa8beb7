"""`StreamFleet`: cars on roads of a stream, the oldest of which are replaced by new ones between two rollouts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet, FleetState
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import StateError
from hotlap.sim.engine import Engine
from hotlap.sim.ribbon import FAR_SPAN, NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons

NEXT_ROAD = "next_road"  # the column of a saved state that is the same for all cars


class RoadSource(Protocol):
    """Makes the roads of a stream (`hotlap.tracks.road_workers.RoadWorkers`)."""

    def ask(self, numbers: Iterable[int]) -> None:
        """Have these roads made."""

    def take(self, number: int) -> Ribbons:
        """A road that was asked for; waits until it is made."""

    def close(self) -> None:
        """Make no more roads."""


@dataclass(frozen=True)
class StreamPlan:
    """How a run's cars are spread over the roads of a stream; `first_car` and `num_cars` are those of this process."""

    num_slots: int  # roads that are driven at the same time
    new_roads: int  # how many of them are replaced before each rollout
    max_nodes: int  # of one road
    num_cars: int
    first_car: int = 0
    total_cars: int = 0  # of all processes; 0: `num_cars`

    def slots_of_cars(self) -> NDArray[np.int64]:
        """The slot of each car. Neighbours share one, and so do their caches and the processes of a run."""
        cars = self.first_car + np.arange(self.num_cars, dtype=np.int64)
        return cars * self.num_slots // (self.total_cars or self.num_cars)


class StreamFleet(Fleet):
    """Cars in slots, each with one road.

    Road n of the stream lies in slot n modulo their number, so a new road always replaces the oldest one, and the
    number of the next road says which roads lie where. The arrays of the ribbons have room for the longest road and
    are only written in place, as a CUDA graph needs it.
    """

    def __init__(
        self,
        source: RoadSource,
        plan: StreamPlan,
        settings: RacerSettings,
        engine: Engine,
        observation: ObservationName = DEFAULT_OBSERVATION,
        next_road: int | None = None,
    ) -> None:
        """The first roads are those before number `next_road`, by default those at the stream's beginning."""
        self.tracks = ()
        self.plan, self._source = plan, source
        slots = plan.slots_of_cars()
        self._set_up(_make_slots(plan), slots, settings, engine, observation)
        self._driven = np.unique(slots)
        self._numbers = np.full(plan.num_slots, -1, np.int64)  # of the road in each slot; -1: none
        self._changed: set[int] = set()
        self.next_road = 0
        self._lay_roads(plan.num_slots if next_road is None else next_road)

    def renew_roads(self) -> NDArray[np.bool_]:
        """Replace the oldest roads; returns the cars on them, which begin an episode on the new ones."""
        replaced = self._lay_roads(self.next_road + min(self.plan.new_roads, self.plan.num_slots))
        mask = np.isin(self.states["track"], replaced)
        self.states["episode"][mask] += 1
        self.reset(mask=mask)
        return mask

    def take_changed(self) -> list[int]:
        """The slots whose road was replaced since this was last called."""
        changed, self._changed = sorted(self._changed), set()
        return changed

    def slot_parts(self, slot: int) -> tuple[slice, slice, slice]:
        """Where a slot's road lies in each of the arrays of the ribbons."""
        head = self.scenario.ribbons.tracks[slot]
        first, first_portal, num_nodes = int(head["first_node"]), int(head["first_portal"]), int(head["num_nodes"])
        portals = slice(first_portal - FAR_SPAN, first_portal + num_nodes + FAR_SPAN)
        return slice(slot, slot + 1), slice(first, first + num_nodes), portals

    def get_state(self) -> FleetState:
        """A copy of the complete state; the number of the next road stands for all roads."""
        return {**super().get_state(), NEXT_ROAD: np.array(self.next_road, np.int64)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, on the roads of its time."""
        columns = dict(state)
        found = np.asarray(columns.pop(NEXT_ROAD, -1))
        if found.shape != () or not np.issubdtype(found.dtype, np.integer) or found < self.plan.num_slots:
            raise StateError(f"state: {NEXT_ROAD} must be a whole number from {self.plan.num_slots}.")
        self._lay_roads(int(found))
        super().set_state(columns)

    def close(self) -> None:
        """End what makes roads."""
        self._source.close()

    def _numbers_at(self, next_road: int) -> NDArray[np.int64]:
        """The number of the road in each slot when `next_road` is the next one."""
        slots = np.arange(self.plan.num_slots)
        numbers: NDArray[np.int64] = next_road - 1 - (next_road - 1 - slots) % self.plan.num_slots
        return numbers

    def _lay_roads(self, next_road: int) -> NDArray[np.int64]:
        """Lay the roads before `next_road` where cars drive and ask for the following; returns the slots replaced."""
        numbers = self._numbers_at(next_road)
        replaced: NDArray[np.int64] = self._driven[numbers[self._driven] != self._numbers[self._driven]]
        replaced = replaced[np.argsort(numbers[replaced])]  # in the order in which they are made
        self._source.ask(numbers[replaced].tolist())
        following = next_road + min(2 * self.plan.new_roads, self.plan.num_slots)
        for slot in replaced.tolist():
            self._lay(slot, self._source.take(int(numbers[slot])))
        self._numbers[replaced] = numbers[replaced]
        self.next_road = next_road
        ahead = np.arange(next_road, following)
        self._source.ask(ahead[np.isin(ahead % self.plan.num_slots, self._driven)].tolist())
        return replaced

    def _lay(self, slot: int, road: Ribbons) -> None:
        """Copy a road into a slot."""
        head = self.scenario.ribbons.tracks[slot]
        for name in ("num_nodes", "step_m", "length_m", "widest_wall_m"):
            head[name] = road.tracks[0][name]
        for target, part, source in zip(self.scenario.ribbons, self.slot_parts(slot), road, strict=True):
            if source.dtype != TRACK_DTYPE:
                target[part].view(np.uint8)[:] = source.view(np.uint8)  # NumPy copies records field by field
        self._changed.add(slot)


def _make_slots(plan: StreamPlan) -> Ribbons:
    """Room for a road of `max_nodes` in each slot. The system gives memory for what is written only."""
    heads = np.zeros(plan.num_slots, TRACK_DTYPE)
    slots, num_portals = np.arange(plan.num_slots), plan.max_nodes + 2 * FAR_SPAN
    heads["first_node"], heads["first_portal"] = slots * plan.max_nodes, slots * num_portals + FAR_SPAN
    nodes = np.zeros(plan.num_slots * plan.max_nodes, NODE_DTYPE)
    return Ribbons(heads, nodes, np.zeros(plan.num_slots * num_portals, PORTAL_DTYPE))
