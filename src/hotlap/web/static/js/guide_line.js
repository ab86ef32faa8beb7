// The guide of a road: a quick line and the progress along it, with the arithmetic of the simulator's guide_line.py in
// the same order.

import { speedProfile } from './casual_pilot.js';
import { bend, quickenLine, STRIDES } from './quick_line.js';

const COARSE_SPACING_M = 12;
const COARSE_MULTIPLE = STRIDES[0] / 4;
const SWEEPS = [1500, 600, 300];
const STEP_SIZE = 1 / 17;
const EDGE_MARGIN_M = 0.5;
const GRIP_FRACTION = 0.9;
const MIN_STRETCH = 0.25;
const MIN_SPEED_MPS = 1;

/** For every node the guide's distance to the left of the centreline (m) and its progress along the lap (m/s). */
export function guideLine(road, car) {
  const lengthM = road.step * road.size;
  const coarse = COARSE_MULTIPLE * Math.max(2, Math.floor(lengthM / (COARSE_SPACING_M * COARSE_MULTIPLE) + 0.5));
  const room = (edge, wall) =>
    edge.map((each, k) => Math.max(Math.min(each, wall[k] - car.radius_m) - EDGE_MARGIN_M, 0));
  const columns = {
    x: road.x,
    y: road.y,
    normalX: road.ty.map((value) => -value),
    normalY: road.tx,
    lowest: room(road.right, road.wallRight).map((value) => -value),
    highest: room(road.left, road.wallLeft),
  };
  let offset = new Float64Array(coarse);
  let points;
  SWEEPS.forEach((sweeps, level) => {
    const count = coarse * 2 ** level;
    points = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, sample(values, count)]));
    const { lowest, highest } = points;
    offset = sample(offset, count).map((value, k) => Math.min(Math.max(value, lowest[k]), highest[k]));
    straighten(points, offset, sweeps);
  });
  offset = quickenLine(points, offset, car);
  const count = offset.length;
  const lineX = points.x.map((value, k) => value + points.normalX[k] * offset[k]);
  const lineY = points.y.map((value, k) => value + points.normalY[k] * offset[k]);
  const { curvature, spacing, length } = bend(lineX, lineY);
  const speeds = speedProfile({ numNodes: count, stepM: length / count, curvature }, car, GRIP_FRACTION);
  const stepM = lengthM / count;
  const progress = speeds.map((speed, k) => Math.max(speed / Math.max(spacing[k] / stepM, MIN_STRETCH), MIN_SPEED_MPS));
  return { leftM: sample(offset, road.size), progressMps: sample(progress, road.size) };
}

/** The values at `count` even places of the loop, linear between the given ones. */
function sample(values, count) {
  const size = values.length;
  return Float64Array.from({ length: count }, (_, k) => {
    const place = (k * size) / count;
    const node = Math.floor(place);
    const fraction = place - node;
    return values[node] * (1 - fraction) + values[(node + 1) % size] * fraction;
  });
}

/** Move the points along their normals, within limits, to lessen the sum of squared second differences. */
function straighten({ x, y, normalX, normalY, lowest, highest }, offset, sweeps) {
  const count = offset.length;
  const [lineX, lineY] = [new Float64Array(count), new Float64Array(count)];
  const [bendX, bendY] = [new Float64Array(count), new Float64Array(count)];
  const tried = offset.slice();
  let weight = 1;
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    for (let k = 0; k < count; k += 1) {
      lineX[k] = x[k] + normalX[k] * tried[k];
      lineY[k] = y[k] + normalY[k] * tried[k];
    }
    for (let k = 0, before = count - 1; k < count; before = k, k += 1) {
      const after = k + 1 < count ? k + 1 : 0;
      bendX[k] = lineX[before] - 2 * lineX[k] + lineX[after];
      bendY[k] = lineY[before] - 2 * lineY[k] + lineY[after];
    }
    const nextWeight = 0.5 * (1 + Math.sqrt(1 + 4 * weight * weight));
    const momentum = (weight - 1) / nextWeight;
    weight = nextWeight;
    let uphill = 0;
    for (let k = 0, before = count - 1; k < count; before = k, k += 1) {
      const after = k + 1 < count ? k + 1 : 0;
      const slopeX = bendX[before] - 2 * bendX[k] + bendX[after];
      const slopeY = bendY[before] - 2 * bendY[k] + bendY[after];
      const slope = slopeX * normalX[k] + slopeY * normalY[k];
      const found = Math.min(Math.max(tried[k] - STEP_SIZE * slope, lowest[k]), highest[k]);
      const moved = found - offset[k];
      uphill += (tried[k] - found) * moved;
      tried[k] = found + momentum * moved;
      offset[k] = found;
    }
    if (uphill > 0) weight = 1;
  }
}
