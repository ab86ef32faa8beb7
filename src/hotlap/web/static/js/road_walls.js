// Where the walls of a drawn road stand: a runoff beyond the road, less where a bend or another leg leaves no room. The
// arithmetic of tracks/geometry/walls.py.

import { isAtCrossing, nearPairs, offset } from './road_shape.js';

const RUNOFF_M = 6;
const WALL_MARGIN = 0.15;
const WALL_ADVANCE = 0.1;
const WALL_SLOPE = 0.5;
const LEG_RATIO = 1.5;
const LEAST_HALF_M = 0.25;
const CAR_ROOM_M = 1 + 0.05; // the disc of a car that meets walls, and a little

/** The road, narrowed where its walls would leave a car no room, and the distances to its walls. */
export function buildWalls(road, crossings) {
  const caps = legCaps(road, crossings);
  const [left, wallLeft] = buildSide(road, 1, caps[0]);
  const [right, wallRight] = buildSide(road, -1, caps[1]);
  return { ...road, left, right, wallLeft, wallRight };
}

function buildSide(road, sign, cap) {
  let width = sign > 0 ? road.left : road.right;
  const room = Math.min(CAR_ROOM_M, RUNOFF_M);
  const wall = wallDistance(road, sign, cap, width);
  if (wall.every((value, k) => value - width[k] >= room)) return [width, wall];
  const free = wallDistance(
    road,
    sign,
    cap,
    width.map(() => LEAST_HALF_M + room),
  );
  width = cut(
    width,
    width.map((value, k) => value + room - free[k]),
    road.step,
  );
  return [
    width,
    wallDistance(
      road,
      sign,
      cap,
      width.map((value) => value + room),
    ),
  ];
}

/** A half-width cut back by this much, and beside it so that the edge comes back with the walls' slope. */
function cut(width, by, step) {
  const limited = limitSlope(
    by.map((value) => -Math.max(value, 0)),
    width.map((value) => -value),
    step,
  );
  return width.map((value, k) => Math.max(value + limited[k], Math.min(value, LEAST_HALF_M)));
}

/** Upper limits of the wall distance, left and right: no wall is closer to another leg's road than to its own. */
function legCaps(road, crossings) {
  const { size, x, y, tx, ty } = road;
  const caps = [new Array(size).fill(Infinity), new Array(size).fill(Infinity)];
  const widths = [road.left, road.right];
  const reach = 2 * (Math.max(...road.left, ...road.right) + RUNOFF_M);
  nearPairs(x, y, reach, (i, j, square) => {
    const gap = Math.abs(i - j);
    const way = Math.min(gap, size - gap) * road.step;
    if (!(way * way > LEG_RATIO * LEG_RATIO * square)) return;
    if (crossings.some((crossing) => isAtCrossing(road, crossing, reach, i, j))) return;
    const [dx, dy] = [x[j] - x[i], y[j] - y[i]];
    const lateral = tx[i] * dy - ty[i] * dx;
    const facing = ty[j] * dx - tx[j] * dy;
    const side = lateral > 0 ? 0 : 1;
    const wider = widths[facing > 0 ? 0 : 1][j] - widths[side][i];
    const bound = 2 * (Math.abs(lateral) + wider);
    if (bound > 0) caps[side][i] = Math.min(caps[side][i], (square - wider * wider) / bound);
  });
  return caps;
}

/** Distance to the wall on one side (sign 1 left, -1 right), nowhere less than `least`. */
function wallDistance(road, sign, cap, least) {
  const { size, step, tx, ty } = road;
  const width = sign > 0 ? road.left : road.right;
  let wall = road.curvature.map((bend, k) => {
    const limit = Math.max(cap[k], width[k] + CAR_ROOM_M);
    const inner = (1 - WALL_MARGIN) / Math.max(sign * bend, 1e-12);
    return Math.max(Math.min(Math.min(width[k] + RUNOFF_M, limit), inner), least[k]);
  });
  wall = limitSlope(wall, least, step);
  for (;;) {
    const now = wall;
    const [x, y] = offset(
      road,
      now.map((value) => sign * value),
    );
    const isShort = x.map((_, k) => {
      const n = (k + 1) % size;
      return (x[n] - x[k]) * tx[k] + (y[n] - y[k]) * ty[k] < WALL_ADVANCE * step;
    });
    const isPulled = isShort.map((flag, k) => (flag || isShort[(k + size - 1) % size]) && now[k] > least[k]);
    if (!isPulled.some(Boolean)) return wall;
    const pulled = now.map((value, k) => {
      const spare = 0.7 * (value - least[k]);
      return isPulled[k] ? (spare > 0.01 ? least[k] + spare : least[k]) : value;
    });
    wall = limitSlope(pulled, least, step);
  }
}

/** Pull walls inward until they open no faster than the slope limit, but never onto the road. */
function limitSlope(wall, width, step) {
  const size = wall.length;
  const rise = WALL_SLOPE * step;
  let now = wall;
  for (let shift = 1; shift < size && shift * rise <= Math.max(...now) - Math.min(...width); shift *= 2) {
    const [before, by] = [now, shift];
    now = before.map((value, k) =>
      Math.min(value, Math.min(before[(k + size - by) % size], before[(k + by) % size]) + by * rise),
    );
  }
  return now.map((value, k) => Math.max(value, width[k]));
}
