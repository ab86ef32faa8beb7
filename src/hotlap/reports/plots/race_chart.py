"""A race as a picture: how far behind the winner each car was, all along the race."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.rendering import car_colour
from hotlap.reports.plots.chart import (
    TITLE_IN,
    label_panel,
    legend_height_in,
    new_chart,
    to_png,
    write_legend,
    write_title,
)
from hotlap.sim.vehicle import TICKS_PER_SECOND

_HEIGHT_IN = 4.6
_SAMPLES_PER_LAP = 200
_MAX_LAP_TICKS = 20


class RaceHistory:
    """The progress of the cars of one race, recorded step by step."""

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._progress_m: list[NDArray[np.float64]] = []
        self.lap_m, self.laps = 1.0, 1

    def add(self, fleet: RaceFleet) -> None:
        """Add the race as it is now."""
        self.lap_m, self.laps = float(fleet.lap_lengths_m[0]), fleet.laps
        self._times_s.append(int(fleet.entrants["tick"][0]) / TICKS_PER_SECOND)
        self._progress_m.append(fleet.progress_m)

    def arrivals_s(self, places_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """When each car first was at each place of the race, (cars, places); NaN where it never was."""
        times_s, reached_m = np.array(self._times_s), np.maximum.accumulate(np.stack(self._progress_m), axis=0)
        found = np.full((reached_m.shape[1], len(places_m)), np.nan)
        for car, own_m in enumerate(reached_m.T):
            is_new = np.concatenate([[True], np.diff(own_m) > 0.0])
            was_there = (places_m >= own_m[0]) & (places_m <= own_m[-1])
            found[car, was_there] = np.interp(places_m[was_there], own_m[is_new], times_s[is_new])
        return found


def draw_race_chart(history: RaceHistory, names: Sequence[str], positions: NDArray[np.int32], title: str) -> bytes:
    """A PNG: each car's gap to the winner over the race, the winner on top."""
    order = [int(car) for car in np.argsort(positions, kind="stable")]
    labels = [f"{positions[car]}. {names[car]}" for car in order]
    colours = ["#{:02x}{:02x}{:02x}".format(*car_colour(car)) for car in order]
    legend = list(zip(labels, colours, strict=True))
    laps = np.linspace(0.0, history.laps, history.laps * _SAMPLES_PER_LAP + 1)
    arrivals_s = history.arrivals_s(laps * history.lap_m)
    top_in = TITLE_IN + legend_height_in(labels) + 0.15
    figure, (axes,) = new_chart([_HEIGHT_IN], top_in=top_in, limit=float(history.laps), x_label="lap")
    label_panel(axes, "seconds behind the winner")
    for car, colour in zip(order, colours, strict=True):
        axes.line(laps, arrivals_s[car] - arrivals_s[order[0]], colour)
    axes.y.is_reversed, axes.x.has_grid = True, True
    every = -(-history.laps // _MAX_LAP_TICKS)
    axes.x.ticks = range(0, history.laps + 1, every)
    write_title(figure, title, "each car's gap to the winner along the race; where a line ends, the car was out")
    write_legend(figure, legend)
    return to_png(figure)
