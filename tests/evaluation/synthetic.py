"""Laps with known times: a raceline on a track's centreline, and a drive along it at a fraction of its speed."""

import math

import numpy as np

from hotlap.evaluation.evaluate import Lap
from hotlap.evaluation.telemetry import Telemetry
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.files.raceline_file import Raceline
from hotlap.tracks.registry import Track


def centreline_raceline(track: Track, speed_mps: np.ndarray | None = None) -> Raceline:
    """The centreline at the given speed of each node, or as fast as a point mass could."""
    nodes = track.nodes
    if speed_mps is None:
        speed_mps = speed_profile(nodes.curvature_radpm, nodes.step_m, CarParameters(), 1.0)
    gain = np.roll(speed_mps, -1) ** 2 - np.roll(speed_mps, 1) ** 2
    return Raceline(
        s_m=np.arange(nodes.num_nodes) * nodes.step_m,
        x_m=nodes.x_m,
        y_m=nodes.y_m,
        psi_rad=np.arctan2(nodes.tangent_y, nodes.tangent_x) - math.pi / 2,
        kappa_radpm=nodes.curvature_radpm,
        vx_mps=speed_mps,
        ax_mps2=gain / (4.0 * nodes.step_m),
    )


def clock(raceline: Raceline, track: Track) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arc length in steps of about a centimetre, time and speed of a lap on the centreline, by summation."""
    nodes = track.nodes
    arc_m = np.linspace(0.0, nodes.length_m, 100 * nodes.num_nodes + 1)
    squared = np.append(raceline.vx_mps, raceline.vx_mps[0]) ** 2
    speed_mps = np.sqrt(np.interp(arc_m, np.arange(nodes.num_nodes + 1) * nodes.step_m, squared))
    pieces_s = 0.5 * np.diff(arc_m) * (1.0 / speed_mps[1:] + 1.0 / speed_mps[:-1])
    return arc_m, np.concatenate([[0.0], np.cumsum(pieces_s)]), speed_mps


def follow(
    raceline: Raceline, track: Track, fraction: float = 1.0, *, num_laps: int = 2, is_clean: bool = True
) -> Telemetry:
    """Laps exactly on the centreline at `fraction` of the raceline's speed, the first one too."""
    nodes = track.nodes
    fine_m, fine_s, fine_mps = clock(raceline, track)
    lap_s = float(fine_s[-1]) / fraction
    ticks = np.arange(math.ceil(num_laps * lap_s * 60.0) + 1)
    arc_m = np.interp(ticks / 60.0 % lap_s, fine_s / fraction, fine_m) % nodes.length_m
    loop_m = np.arange(nodes.num_nodes + 1) * nodes.step_m
    x_m, y_m = (np.interp(arc_m, loop_m, np.append(values, values[0])) for values in (nodes.x_m, nodes.y_m))
    still = np.zeros(len(ticks))
    laps = [Lap(0, number, lap_s, is_clean) for number in range(1, num_laps + 1)]
    return Telemetry(
        x_m, y_m, fraction * np.interp(arc_m, fine_m, fine_mps), arc_m, still, still, still + 0.5, still, laps
    )
