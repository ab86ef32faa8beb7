"""Checks of generated tracks that share no code with the generator: rules, corners, straights, digits."""

import hashlib
import math
from itertools import pairwise

import numpy as np
import shapely


def points(track):
    return np.stack((track.x_m, track.y_m), axis=1)


def curvature(track):
    """Signed curvature of the circle through each point and its two neighbours, and the road length at each point."""
    p = points(track)
    a, b = p - np.roll(p, 1, axis=0), np.roll(p, -1, axis=0) - p
    la, lb = np.hypot(*a.T), np.hypot(*b.T)
    chord = np.hypot(*(a + b).T)
    return 2.0 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / (la * lb * chord), 0.5 * (la + lb)


def edges(track):
    """Left and right road edge as rings, offset along the normals of the chords."""
    p = points(track)
    tangent = np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)
    tangent /= np.hypot(*tangent.T)[:, None]
    normal = np.stack((-tangent[:, 1], tangent[:, 0]), axis=1)
    left = shapely.LinearRing(p + normal * track.width_left_m[:, None])
    right = shapely.LinearRing(p - normal * track.width_right_m[:, None])
    return left, right


def near_misses(track, margin_m):
    """Pairs of segments nearer than the road and a margin, though far apart along the road."""
    p = points(track)
    segments = shapely.linestrings(np.stack((p, np.roll(p, -1, axis=0)), axis=1))
    needed = track.width_left_m.max() + track.width_right_m.max() + margin_m
    i, j = shapely.STRtree(segments).query(segments, predicate="dwithin", distance=needed)
    lengths = shapely.length(segments)
    apart = np.abs(np.cumsum(lengths)[i] - np.cumsum(lengths)[j])
    return int(np.sum(np.minimum(apart, lengths.sum() - apart) > 2.5 * needed))


def inner_margin_m(track):
    """The least distance from an edge to the centre of the bend that it is the inside of."""
    kappa, _ = curvature(track)
    inner = np.where(kappa > 0.0, track.width_left_m, track.width_right_m)
    return float((1.0 / np.maximum(np.abs(kappa), 1e-9) - inner).min())


def near_edges(track, margin_m, near_m):
    """Pairs of points whose edges are nearer than a margin, though farther apart along the road than `near_m`."""
    p, (_, ds) = points(track)[::2], curvature(track)
    half = np.maximum(track.width_left_m, track.width_right_m)[::2]
    i, j = shapely.STRtree(shapely.points(p)).query(shapely.points(p), "dwithin", 2.0 * half.max() + margin_m)
    s = np.cumsum(ds)[::2]
    apart = np.abs(s[i] - s[j])
    gap = np.hypot(*(p[i] - p[j]).T) - half[i] - half[j]
    return int(np.sum((gap < margin_m) & (np.minimum(apart, ds.sum() - apart) > near_m)))


def faults(track, *, length_m=(600.0, 4000.0), width_m=(7.0, 15.0), start_curvature=1e-3, is_narrowed=False):
    """Every rule the track breaks, in words; a narrowed road may be as wide as the inside of a bend allows."""
    ring = shapely.LinearRing(points(track))
    left, right = edges(track)
    outer, inner = (left, right) if shapely.Polygon(left).area > shapely.Polygon(right).area else (right, left)
    kappa, _ = curvature(track)
    widest = max(track.width_left_m.max(), track.width_right_m.max())
    total = track.width_left_m + track.width_right_m
    steps = shapely.length(shapely.linestrings(np.stack((points(track), np.roll(points(track), -1, axis=0)), axis=1)))
    rules = {
        "length": length_m[0] <= ring.length <= length_m[1],
        "simple": ring.is_simple,
        "edges simple": left.is_simple and right.is_simple,
        "edges apart": not left.intersects(right),
        "road polygon": shapely.Polygon(outer, [inner]).is_valid,
        "radius": inner_margin_m(track) > 0.2 if is_narrowed else 1.0 / np.abs(kappa).max() > max(9.0, widest + 3.0),
        "clearance": (near_edges(track, 1.0, 150.0) if is_narrowed else near_misses(track, 6.0)) == 0,
        "width": total.min() >= width_m[0] and total.max() <= width_m[1],
        "even spacing": steps.min() > 3.5 and steps.max() < 4.5,
        "straight start": np.abs(kappa[[-2, -1, 0, 1, 2, 3, 4]]).max() < start_curvature,
        "starts at the origin": track.x_m[0] == 0.0 and track.y_m[0] == 0.0,
        "millimetres": all(float(f"{v:.3f}") == v for v in (*track.x_m, *track.y_m, *track.width_left_m)),
    }
    return [rule for rule, holds in rules.items() if not holds]


def corners(track):
    """(turn in degrees, smallest radius, first s, last s) of every run tighter than 150 m turning over 20 degrees."""
    kappa, ds = curvature(track)
    s = np.cumsum(ds)
    bends = np.where(np.abs(kappa) > 1.0 / 150.0, np.sign(kappa), 0.0)
    cuts = [0, *(np.flatnonzero(np.diff(bends)) + 1), len(bends)]
    found = []
    for a, b in pairwise(cuts):
        turn = math.degrees(np.sum(kappa[a:b] * ds[a:b]))
        if bends[a] != 0.0 and abs(turn) > 20.0:
            found.append((turn, 1.0 / np.abs(kappa[a:b]).max(), s[a], s[b - 1]))
    return found


def longest_straight_m(track):
    kappa, ds = curvature(track)
    longest = run = 0.0
    for bend, step in zip(np.tile(np.abs(kappa), 2), np.tile(ds, 2), strict=True):
        run = run + step if bend < 1.0 / 500.0 else 0.0
        longest = max(longest, run)
    return longest


def has_hairpin(track):
    return any(abs(turn) > 130.0 and radius < 20.0 for turn, radius, _, _ in corners(track))


def has_chicane(track):
    bends = corners(track)
    return any(a[0] * b[0] < 0.0 and b[2] - a[3] < 60.0 for a, b in pairwise(bends))


def digest(tracks):
    """SHA-256 of the tracks' digits, as a file has them."""
    found = hashlib.sha256()
    for track in tracks:
        for row in zip(track.x_m, track.y_m, track.width_right_m, track.width_left_m, strict=True):
            found.update((",".join(f"{value:.3f}" for value in row) + "\n").encode())
    return found.hexdigest()
