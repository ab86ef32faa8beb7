"""Small races for the simulator's tests: cars put on one road by hand."""

from collections.abc import Sequence

import numpy as np

from hotlap.sim.engine import ALL_FINE, Races
from hotlap.sim.race import START_GRID, make_field, race_rules
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS
from hotlap.sim.ribbon_nodes import RibbonNodes
from sim.kernels import F
from sim.worlds import World


class RaceWorld(World):
    """Races of `num_cars` cars on one road, for tests that set states by hand."""

    def __init__(
        self,
        nodes: RibbonNodes,
        num_cars: int,
        num_races: int = 1,
        *,
        laps: int = 3,
        start: int = START_GRID,
        race_ticks: int = 2**31 - 1,
        num_obs: int = NUM_RACE_OBSERVATIONS,
        seed: int = 0,
        **rules,
    ) -> None:
        self.cars_per_race, self.num_races = num_cars, num_races
        self.race = race_rules(num_cars, laps, start, race_ticks)
        self.field = make_field(num_cars * num_races)
        self._seed = seed
        super().__init__([nodes], num_cars * num_races, num_obs=num_obs, start=start, **rules)

    @property
    def races(self) -> Races:
        return Races(self.scenario, self.race, self.batch, self.field)

    @property
    def entrants(self) -> np.ndarray:
        return self.field.entrants

    def reset(self, slots: Sequence[int] | None = None) -> None:
        """Begin all races anew, on the given slots or on drawn ones."""
        self.states["seed"] = self._seed + np.arange(self.num_cars) // self.cars_per_race
        if slots is not None:
            self.entrants["slot"] = np.tile(slots, self.num_races)
        CpuRaceEngine().reset(np.ones(self.num_races, np.bool_), self.races)

    def step(self, actions, autoreset: bool = False, num_threads: int = 1, repeat: int = 1) -> None:
        actions = np.broadcast_to(np.asarray(actions, F), (self.num_cars, 3)).copy()
        engine = CpuRaceEngine(num_threads)
        assert engine.step(actions, self.races, autoreset=autoreset, repeat=repeat) == ALL_FINE

    def observe(self) -> None:
        """Show every car to the others and fill the observations, after states were set by hand."""
        CpuRaceEngine().observe(self.races)


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Compare records column by column: what lies between columns is nobody's."""
    for name in a.dtype.names or ():
        assert a[name].tobytes() == b[name].tobytes(), name


def mirrored(nodes: RibbonNodes) -> RibbonNodes:
    """The track with left and right exchanged."""
    return RibbonNodes(
        step_m=nodes.step_m,
        x_m=nodes.x_m,
        y_m=-nodes.y_m,
        tangent_x=nodes.tangent_x,
        tangent_y=-nodes.tangent_y,
        curvature_radpm=-nodes.curvature_radpm,
        road_left_m=nodes.road_right_m,
        road_right_m=nodes.road_left_m,
        wall_left_m=nodes.wall_right_m,
        wall_right_m=nodes.wall_left_m,
    )
