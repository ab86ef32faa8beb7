"""A solved plan as a raceline: positions, headings, curvatures, speeds and accelerations along the driven line."""

import numpy as np

from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import State
from hotlap.optimal.plan import Plan
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.files.raceline_file import Raceline

SPACING_M = 2.0


def make_raceline(plan: Plan, nodes: RibbonNodes) -> Raceline:
    """The raceline of a flying lap, a point every two metres of centreline, from the start line."""
    lap_m = nodes.length_m
    arc_m = np.arange(0.0, lap_m - 0.5 * SPACING_M, SPACING_M)
    have_m = np.concatenate([plan.arc_m - lap_m, plan.arc_m, plan.arc_m + lap_m])
    columns = np.concatenate([plan.states] * 3)
    lateral, heading, forward, left = (
        np.interp(arc_m, have_m, columns[:, k]) for k in (State.LATERAL, State.HEADING, State.FORWARD, State.LEFT)
    )
    tangent_x, tangent_y = (along_track(values, nodes, arc_m) for values in (nodes.tangent_x, nodes.tangent_y))
    x_m = along_track(nodes.x_m, nodes, arc_m) - lateral * tangent_y
    y_m = along_track(nodes.y_m, nodes, arc_m) + lateral * tangent_x
    speed = np.hypot(forward, left)
    course = np.unwrap(np.arctan2(tangent_y, tangent_x) + heading + np.arctan2(left, forward))
    pieces_m = np.hypot(np.diff(x_m, append=x_m[0]), np.diff(y_m, append=y_m[0]))
    s_m = np.concatenate([[0.0], np.cumsum(pieces_m)[:-1]])
    around_m = pieces_m + np.roll(pieces_m, 1)
    turn = np.roll(course, -1) - np.roll(course, 1)
    turn = (turn + np.pi) % (2.0 * np.pi) - np.pi
    gain = (np.roll(speed, -1) ** 2 - np.roll(speed, 1) ** 2) / 2.0
    # The raceline format measures angles from north.
    psi = (course - 0.5 * np.pi + np.pi) % (2.0 * np.pi) - np.pi
    return Raceline(s_m, x_m, y_m, psi, turn / around_m, speed, gain / around_m)
