"""Draws a top-down frame of one car (road, walls, rays, speed, controls, map) or of a race. It needs no display."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from hotlap.envs.race_infos import OUT_OF_RACE
from hotlap.sim.race import RACING
from hotlap.sim.rays import NUM_RAYS, RAY_RANGE_M
from hotlap.sim.vehicle import TICKS_PER_SECOND, CarParameters
from hotlap.sim.world import OBS_SPEED
from hotlap.tracks.geometry.node_builder import road_edges, wall_lines
from hotlap.tracks.geometry.spline import FloatArray
from hotlap.tracks.registry import Track

FRAME_PX = 600
VIEW_M = 90.0  # width of a frame in the world
_OVERSAMPLE = 2
_SCALE = FRAME_PX * _OVERSAMPLE / VIEW_M
_MAP_PX = 130 * _OVERSAMPLE

GRASS, RUNOFF, ROAD, EDGE = (44, 62, 44), (126, 118, 92), (66, 68, 74), (235, 235, 235)
WALL, CENTRE, RAY, CAR, GLASS, TEXT = (
    (214, 66, 54),
    (120, 122, 128),
    (255, 214, 102),
    (64, 156, 255),
    (20, 40, 70),
    (245,) * 3,
)
PANEL, GAUGE, THROTTLE, BRAKE = (24, 30, 26), (64, 72, 68), (92, 200, 110), (228, 84, 70)

RACE_COLOURS = (
    (64, 156, 255),
    (255, 159, 28),
    (92, 200, 110),
    (239, 83, 80),
    (171, 121, 255),
    (255, 214, 102),
    (77, 208, 225),
    (240, 128, 190),
    (200, 200, 205),
    (160, 110, 70),
    (205, 220, 57),
    (120, 144, 200),
)

Points = list[tuple[float, float]]


@lru_cache(maxsize=32)
def _lines(track: Track) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Left and right road edges, left and right walls, each (num_nodes, 2)."""
    return (*road_edges(track.nodes), *wall_lines(track.nodes))


def draw_frame(track: Track, state: Any, obs: NDArray[np.float32], top_speed_mps: float) -> NDArray[np.uint8]:
    """An RGB array (600, 600, 3) of the world around the car; `state` is the car's record."""
    image = Image.new("RGB", (FRAME_PX * _OVERSAMPLE,) * 2, GRASS)
    draw = ImageDraw.Draw(image)
    centre = np.array([state["x_m"], state["y_m"]], np.float64)
    _draw_road(draw, track, centre)
    _draw_rays(draw, centre, float(state["yaw_rad"]), obs)
    _draw_car(draw, centre, float(state["yaw_rad"]), centre, CAR)
    _draw_map(draw, track, centre[None], [CAR])
    _draw_text(draw, state, float(obs[OBS_SPEED]) * top_speed_mps)
    _draw_controls(draw, float(state["steer"]), float(state["throttle"]), float(state["brake"]))
    return np.asarray(image.resize((FRAME_PX, FRAME_PX), Image.Resampling.BOX))


def draw_race(track: Track, states: NDArray[np.void], entrants: NDArray[np.void]) -> NDArray[np.uint8]:
    """An RGB array (600, 600, 3) of the world around the leader of a race; cars out of the race have left the road."""
    image = Image.new("RGB", (FRAME_PX * _OVERSAMPLE,) * 2, GRASS)
    draw = ImageDraw.Draw(image)
    order = np.argsort(entrants["position"], kind="stable")
    racing = [car for car in order if entrants["status"][car] == RACING]
    places = np.column_stack([states["x_m"], states["y_m"]]).astype(np.float64)
    centre = places[racing[0] if racing else order[0]]
    _draw_road(draw, track, centre)
    for car in racing[::-1]:
        _draw_car(draw, places[car], float(states["yaw_rad"][car]), centre, car_colour(car))
    _draw_map(draw, track, places[racing[::-1]], [car_colour(car) for car in racing[::-1]])
    _draw_order(draw, order, entrants)
    return np.asarray(image.resize((FRAME_PX, FRAME_PX), Image.Resampling.BOX))


def car_colour(number: int) -> tuple[int, int, int]:
    """The colour of a car by its number; they repeat after twelve."""
    return RACE_COLOURS[number % len(RACE_COLOURS)]


def _draw_order(draw: ImageDraw.ImageDraw, order: NDArray[np.integer[Any]], entrants: NDArray[np.void]) -> None:
    """The first ten positions, in the upper left corner."""
    font, shown = ImageFont.load_default(size=14 * _OVERSAMPLE), order[:10]
    draw.rounded_rectangle([16, 16, 250, 40 + 38 * len(shown)], radius=12, fill=PANEL)
    for row, car in enumerate(shown):
        y = 48 + 38 * row
        draw.text((60, y), str(row + 1), font=font, fill=TEXT, anchor="rm")
        draw.rectangle([76, y - 11, 98, y + 11], fill=car_colour(car))
        note = OUT_OF_RACE.get(int(entrants["status"][car]), "")
        draw.text((112, y), f"car {car} {note}", font=font, fill=TEXT, anchor="lm")


def _to_pixels(points: FloatArray, centre: FloatArray) -> FloatArray:
    """World coordinates (m) to pixels: the car is in the middle, y points up."""
    middle = FRAME_PX * _OVERSAMPLE / 2.0
    pixels: FloatArray = (points - centre) * np.array([_SCALE, -_SCALE]) + middle
    return pixels


def _as_points(array: FloatArray) -> Points:
    return [(float(x), float(y)) for x, y in array]


def _draw_road(draw: ImageDraw.ImageDraw, track: Track, centre: FloatArray) -> None:
    """The stretches of track in view, drawn quad by quad so that an overpass shows both levels."""
    nodes = track.nodes
    near = np.hypot(nodes.x_m - centre[0], nodes.y_m - centre[1]) < 0.75 * VIEW_M + 20.0
    indices = np.flatnonzero(near)
    following = (indices + 1) % nodes.num_nodes
    road_left, road_right, wall_left, wall_right = (_to_pixels(line, centre) for line in _lines(track))
    for left, right, colour in ((wall_left, wall_right, RUNOFF), (road_left, road_right, ROAD)):
        for quad in np.stack([left[indices], left[following], right[following], right[indices]], axis=1):
            draw.polygon(_as_points(quad), fill=colour)
    for line, colour, width in (
        (road_left, EDGE, 2),
        (road_right, EDGE, 2),
        (wall_left, WALL, 4),
        (wall_right, WALL, 4),
    ):
        for a, b in zip(line[indices], line[following], strict=True):
            draw.line([tuple(a), tuple(b)], fill=colour, width=width * _OVERSAMPLE)
    middle = _to_pixels(np.column_stack([nodes.x_m, nodes.y_m]), centre)
    for i, j in zip(indices, following, strict=True):
        if i % 6 < 2:
            draw.line([tuple(middle[i]), tuple(middle[j])], fill=CENTRE, width=2 * _OVERSAMPLE)
    _draw_start(draw, road_left[0], road_right[0])


def _draw_start(draw: ImageDraw.ImageDraw, left: FloatArray, right: FloatArray) -> None:
    """A chequered line from edge to edge."""
    across = right - left
    along = np.array([-across[1], across[0]]) / max(float(np.hypot(*across)), 1e-9) * _SCALE * 0.6
    count = 12
    for k in range(count):
        for row in range(2):
            a, b = left + across * (k / count), left + across * ((k + 1) / count)
            colour = EDGE if (k + row) % 2 else (20, 20, 20)
            draw.polygon(_as_points(np.array([a, b, b + along, a + along]) + along * (row - 1)), fill=colour)


def _draw_rays(draw: ImageDraw.ImageDraw, centre: FloatArray, yaw_rad: float, obs: NDArray[np.float32]) -> None:
    origin = tuple(_to_pixels(centre, centre))
    for ray in range(NUM_RAYS):
        angle = yaw_rad - math.pi / 2.0 + ray * math.pi / (NUM_RAYS - 1)
        reach_m = float(obs[ray]) * float(RAY_RANGE_M)
        end = centre + reach_m * np.array([math.cos(angle), math.sin(angle)])
        x, y = _to_pixels(end, centre)
        draw.line([origin, (x, y)], fill=RAY, width=_OVERSAMPLE)
        draw.ellipse([x - 6, y - 6, x + 6, y + 6], fill=RAY)


def _draw_car(
    draw: ImageDraw.ImageDraw, place: FloatArray, yaw_rad: float, centre: FloatArray, colour: tuple[int, int, int]
) -> None:
    car = CarParameters()
    half_length, half_width = car.length_m / 2.0, car.width_m / 2.0
    turn = np.array([[math.cos(yaw_rad), math.sin(yaw_rad)], [-math.sin(yaw_rad), math.cos(yaw_rad)]])
    nose = half_length * 0.72
    hull = np.array(
        [
            [-half_length, -half_width],
            [nose, -half_width],
            [half_length, -half_width * 0.55],
            [half_length, half_width * 0.55],
            [nose, half_width],
            [-half_length, half_width],
        ]
    )
    screen = np.array([[0.0, -0.8], [1.1, -0.65], [1.1, 0.65], [0.0, 0.8]]) * half_width
    draw.polygon(_as_points(_to_pixels(hull @ turn + place, centre)), fill=colour, outline=EDGE, width=_OVERSAMPLE)
    draw.polygon(_as_points(_to_pixels(screen @ turn + place, centre)), fill=GLASS)


def _draw_map(draw: ImageDraw.ImageDraw, track: Track, places: FloatArray, colours: list[tuple[int, int, int]]) -> None:
    """The whole track with the cars, small, in the upper right corner."""
    line = np.column_stack([track.nodes.x_m, track.nodes.y_m])
    low, high = line.min(axis=0), line.max(axis=0)
    scale = (_MAP_PX - 20) / float(max(high - low))
    corner = np.array([FRAME_PX * _OVERSAMPLE - _MAP_PX / 2 - 16, _MAP_PX / 2 + 16])

    def small(points: FloatArray) -> FloatArray:
        pixels: FloatArray = (points - (low + high) / 2.0) * np.array([scale, -scale]) + corner
        return pixels

    box = [*(corner - _MAP_PX / 2), *(corner + _MAP_PX / 2)]
    draw.rounded_rectangle([float(v) for v in box], radius=16, fill=PANEL)
    draw.line([*_as_points(small(line)), _as_points(small(line[:1]))[0]], fill=EDGE, width=4, joint="curve")
    for (x, y), colour in zip(small(places), colours, strict=True):
        draw.ellipse([x - 9, y - 9, x + 9, y + 9], fill=colour, outline=EDGE, width=2)


def _draw_text(draw: ImageDraw.ImageDraw, state: Any, speed_mps: float) -> None:
    """Speed, lap and lap time, right-aligned so that the text does not move."""
    font = ImageFont.load_default(size=15 * _OVERSAMPLE)
    seconds = (int(state["tick"]) - int(state["lap_start_tick"])) / TICKS_PER_SECOND if state["clock_runs"] else None
    draw.rounded_rectangle([16, 16, 560, 72], radius=12, fill=PANEL)
    for right, text in (
        (190, f"{speed_mps * 3.6:.0f} km/h"),
        (350, f"lap {int(state['lap'])}"),
        (530, f"{seconds:.1f} s" if seconds is not None else "to the line"),
    ):
        draw.text((right, 44), text, font=font, fill=TEXT, anchor="rm")


def _draw_controls(draw: ImageDraw.ImageDraw, steer: float, throttle: float, brake: float) -> None:
    """Bars of throttle, brake and steering in the lower left corner."""
    size = FRAME_PX * _OVERSAMPLE
    left, top, width, height = 16, size - 176, 340, 160
    draw.rounded_rectangle([left, top, left + width, top + height], radius=12, fill=PANEL)
    low, high = top + height - 20, top + 20
    for x, fraction, colour in ((left + 24, throttle, THROTTLE), (left + 74, brake, BRAKE)):
        draw.rectangle([x, high, x + 34, low], fill=GAUGE)
        draw.rectangle([x, low - (low - high) * min(max(fraction, 0.0), 1.0), x + 34, low], fill=colour)
    middle, reach = left + 226, 92
    y = (low + high) / 2
    draw.rectangle([middle - reach, y - 14, middle + reach, y + 14], fill=GAUGE)
    end = middle + reach * min(max(steer, -1.0), 1.0)
    draw.rectangle([min(middle, end), y - 14, max(middle, end), y + 14], fill=CAR)
    draw.line([(middle, high), (middle, low)], fill=TEXT, width=_OVERSAMPLE)
