// A road along a line: its nodes, where it crosses itself, what is wrong with it, and bends made narrower where they
// have no room. The rules and the arithmetic of tracks/geometry/road.py and bend_narrowing.py.

import { Spline } from './road_spline.js';

export const SPACING_M = 1;
const MIN_NODES = 64;
const MIN_LENGTH_M = 100;
const MAX_LENGTH_M = 30000;
const MAX_CROSSINGS = 50;
const ROAD_MARGIN = 0.02;
const NEIGHBOUR_M = 150;
const MIN_INNER_M = 2;
const NARROWED_MARGIN = 0.05;
const MAX_TURN_RAD = 1.5 * Math.PI;
const MAX_ROUNDS = 8;
const LONGEST_CROSSING_M = 200;

const SIDES = [
  ['left', 1],
  ['right', -1],
];

/** The nodes of a road along `line` (x, y, left, right of its points), or {fault}. */
export function trace(line) {
  const spline = new Spline(line.x, line.y);
  if (!(spline.length >= MIN_LENGTH_M && spline.length <= MAX_LENGTH_M)) {
    const rule = spline.length < MIN_LENGTH_M ? `at least ${MIN_LENGTH_M} m` : `at most ${MAX_LENGTH_M} m`;
    return { fault: { node: 0, text: `the lap is ${spline.length.toFixed(1)} m long; it must be ${rule}.` } };
  }
  const [step, nodes] = spline.uniform(SPACING_M, MIN_NODES);
  const road = {
    step,
    size: nodes.length,
    x: [],
    y: [],
    tx: [],
    ty: [],
    curvature: [],
    left: [],
    right: [],
    point: [],
  };
  for (const [i, u] of nodes) {
    const [[x, y], [vx, vy], [ax, ay]] = [spline.position(i, u), spline.velocity(i, u), spline.acceleration(i, u)];
    const speed = Math.max(Math.sqrt(vx * vx + vy * vy), 1e-9);
    road.x.push(x);
    road.y.push(y);
    road.tx.push(vx / speed);
    road.ty.push(vy / speed);
    road.curvature.push((vx * ay - vy * ax) / (speed * speed * speed));
    road.right.push(spline.between(line.right, i, u));
    road.left.push(spline.between(line.left, i, u));
    road.point.push(i);
  }
  return road;
}

/** Call `visit(i, j, square)` for nodes at most `reach` apart and at least two nodes from each other. */
export function nearPairs(x, y, reach, visit) {
  const size = x.length;
  const cells = new Map();
  const key = (i, j) => i * 65536 + j;
  const cell = (k) => [Math.floor(x[k] / reach) + 32768, Math.floor(y[k] / reach) + 32768];
  for (let k = 0; k < size; k += 1) {
    const at = key(...cell(k));
    if (cells.has(at)) cells.get(at).push(k);
    else cells.set(at, [k]);
  }
  for (let i = 0; i < size; i += 1) {
    const [column, row] = cell(i);
    for (let a = -1; a <= 1; a += 1) {
      for (let b = -1; b <= 1; b += 1) {
        for (const j of cells.get(key(column + a, row + b)) || []) {
          const gap = Math.abs(i - j);
          if (Math.min(gap, size - gap) < 2) continue;
          const [dx, dy] = [x[j] - x[i], y[j] - y[i]];
          const square = dx * dx + dy * dy;
          if (square <= reach * reach) visit(i, j, square);
        }
      }
    }
  }
}

/** Nodes i < j whose segments to the next node intersect, in order. */
export function findCrossings(x, y) {
  const size = x.length;
  const next = (k) => (k + 1) % size;
  const dx = x.map((value, k) => x[next(k)] - value);
  const dy = y.map((value, k) => y[next(k)] - value);
  const reach = 2 * Math.sqrt(dx.reduce((most, value, k) => Math.max(most, value * value + dy[k] * dy[k]), 0));
  const straddles = (i, j) => {
    const [px, py] = [x[j] - x[i], y[j] - y[i]];
    const start = dx[i] * py - dy[i] * px;
    const end = dx[i] * (py + dy[j]) - dy[i] * (px + dx[j]);
    return start > 0 !== end > 0;
  };
  const found = [];
  nearPairs(x, y, reach, (i, j) => {
    if (i < j && straddles(i, j) && straddles(j, i)) found.push([i, j]);
  });
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

export function offset(road, distance) {
  return [road.x.map((x, k) => x - road.ty[k] * distance[k]), road.y.map((y, k) => y + road.tx[k] * distance[k])];
}

/** Whether i and j are the two levels of an overpass, as far along them as the levels overlap. */
export function isAtCrossing(road, [a, b], reach, i, j) {
  const sine = Math.abs(road.tx[a] * road.ty[b] - road.ty[a] * road.tx[b]);
  const extent = Math.min(reach / Math.max(sine, 1e-3), LONGEST_CROSSING_M) / road.step;
  const near = (k, node) => Math.min(Math.abs(k - node), road.size - Math.abs(k - node)) <= extent;
  return (near(i, a) && near(j, b)) || (near(i, b) && near(j, a));
}

const innerMargin = (road, side, sign) => road.curvature.map((bend, k) => 1 - sign * bend * road[side][k]);

/** Where an edge runs backwards, or crosses itself among neighbours without an overpass. */
function edgeCuts(road, side, sign, overpasses) {
  const { size, step } = road;
  const [x, y] = offset(
    road,
    road[side].map((width) => sign * width),
  );
  const next = (k) => (k + 1) % size;
  const advance = x.map((_, k) => (x[next(k)] - x[k]) * road.tx[k] + (y[next(k)] - y[k]) * road.ty[k]);
  const node = advance.indexOf(Math.min(...advance));
  const cuts = advance[node] <= 0 ? [[node, next(node)]] : [];
  const near = NEIGHBOUR_M / step;
  const lag = (a, b) => Math.min(Math.abs(a - b), size - Math.abs(a - b));
  const isOverpass = ([i, j]) => overpasses.some(([a, b]) => lag(i, a) < near && lag(j, b) < near);
  return [...cuts, ...findCrossings(x, y).filter((cut) => lag(...cut) < near && !isOverpass(cut))];
}

/** Why a road cannot be driven, or null. */
export function findFault(road, overpasses) {
  if (overpasses.length > MAX_CROSSINGS)
    return {
      node: overpasses[0][0],
      text: `the track crosses itself more than ${MAX_CROSSINGS} times. Draw it with fewer crossings.`,
    };
  const margins = SIDES.map(([side, sign]) => innerMargin(road, side, sign));
  const least = margins.map((one) => Math.min(...one));
  const tight = least[0] <= least[1] ? 0 : 1;
  if (least[tight] <= ROAD_MARGIN) {
    const node = margins[tight].indexOf(least[tight]);
    const radius = (1 / Math.abs(road.curvature[node])).toFixed(2);
    const where = `${Math.round(node * road.step)} m after the start has a radius of ${radius} m`;
    const half = road[SIDES[tight][0]][node].toFixed(2);
    return {
      node,
      text:
        Number(radius) < MIN_INNER_M
          ? `the line has a spike or a fold: the curve ${where}. Draw that bend wider, or delete the point.`
          : `curve ${where}, tighter than the half-width of ${half} m on its inside. ` +
            'Widen the curve or narrow the road there.',
    };
  }
  for (const [side, sign] of SIDES) {
    const [cut] = edgeCuts(road, side, sign, overpasses);
    if (cut)
      return {
        node: cut[0],
        text:
          `the ${side} edge crosses itself ${Math.round(cut[0] * road.step)} m after the start. ` +
          'Move the two parts of the road apart or narrow it there.',
      };
  }
  return null;
}

/** The line with its inner half narrower wherever there is no room for it. */
export function narrowTightBends(line) {
  let now = line;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const road = trace(now);
    if (road.fault) return now;
    const overpasses = findCrossings(road.x, road.y);
    if (overpasses.length > MAX_CROSSINGS) return now;
    const before = now;
    for (const [side, sign] of SIDES) now = narrowSide(now, road, side, sign, overpasses);
    if (now === before) return now;
  }
  return now;
}

function narrowSide(line, road, side, sign, overpasses) {
  const bends = stretches(innerMargin(road, side, sign).map((margin) => margin <= ROAD_MARGIN));
  const all = [...bends, ...cutStretches(road, side, sign, overpasses)];
  const turn = (nodes) => Math.abs(nodes.reduce((sum, k) => sum + road.curvature[k], 0)) * road.step;
  if (!all.length || bends.some((nodes) => turn(nodes) > MAX_TURN_RAD)) return line;
  const limit = findRoom(road, side, sign, overpasses).map((room) => (1 - NARROWED_MARGIN) * room);
  const width = [...line[side]];
  for (const nodes of all) {
    if (nodes.some((k) => limit[k] < (1 - NARROWED_MARGIN) * MIN_INNER_M)) continue;
    for (const k of nodes)
      for (const point of [road.point[k], (road.point[k] + 1) % width.length])
        width[point] = Math.min(width[point], limit[k]);
  }
  return width.every((value, k) => value === line[side][k]) ? line : { ...line, [side]: width };
}

/** The runs of neighbouring indices for which the flag is set. */
function stretches(isIn) {
  const found = [];
  isIn.forEach((flag, k) => {
    if (flag && k && isIn[k - 1]) found.at(-1).push(k);
    else if (flag) found.push([k]);
  });
  return found;
}

/** The nodes between the two places where an edge cuts itself, and as far to both sides as cuts are searched. */
function cutStretches(road, side, sign, overpasses) {
  const { size } = road;
  const more = Math.round((0.5 * NEIGHBOUR_M) / road.step);
  return edgeCuts(road, side, sign, overpasses).map((cut) => {
    let [first, second] = cut;
    if (second - first > size - (second - first)) [first, second] = [second, first + size];
    const last = Math.min(second + more, first - more + size - 1);
    return Array.from({ length: last - (first - more) + 1 }, (_, k) => (first - more + k + 2 * size) % size);
  });
}

/** For each node how far its edge may lie on this side: the centre of curvature, or halfway to another part. */
function findRoom(road, side, sign, overpasses) {
  const { size, x, y, tx, ty } = road;
  const next = (k) => (k + 1) % size;
  const room = road.curvature.map((bend) => 1 / Math.max(sign * bend, 1e-12));
  for (let k = 0; k < size; k += 1) {
    const n = next(k);
    const turn = sign * (tx[k] * ty[n] - ty[k] * tx[n]);
    const ahead = ((x[n] - x[k]) * tx[k] + (y[n] - y[k]) * ty[k]) / Math.max(turn, 1e-12);
    room[n] = Math.min(room[n], ahead);
  }
  const reach = 2 * Math.max(...road[side]);
  nearPairs(x, y, reach, (i, j, square) => {
    const gap = Math.abs(i - j);
    if (Math.min(gap, size - gap) * road.step >= 2 * NEIGHBOUR_M) return;
    if (overpasses.some((overpass) => isAtCrossing(road, overpass, reach, i, j))) return;
    const lateral = sign * (tx[i] * (y[j] - y[i]) - ty[i] * (x[j] - x[i]));
    room[i] = Math.min(room[i], square / Math.max(2 * lateral, 1e-12));
  });
  return room;
}
