// The line of a drawing: evenly spaced points of a freehand line, a smooth line through them, and as text for a link.

import { fromText, toText } from './replay.js';

const POINT_SPACING_M = 32;
export const MIN_POINTS = 8;
const MAX_POINTS = 160;
const MIN_LENGTH_M = 120;
const DECIMETRES = 10;

/** Points (m) and width (m) as text: whole decimetres. */
export function lineToText(points, width) {
  const numbers = Int16Array.from([width, ...points.flat()].map((value) => Math.round(value * DECIMETRES)));
  return toText(new Uint8Array(numbers.buffer));
}

export function lineFromText(text) {
  const bytes = fromText(text);
  if (bytes.length % 4 !== 2 || bytes.length < 4 * MIN_POINTS + 2 || bytes.length > 4 * MAX_POINTS + 2) {
    throw new Error('This link holds no track. Was it cut off?');
  }
  const [width, ...values] = [...new Int16Array(bytes.slice().buffer)].map((value) => value / DECIMETRES);
  const points = [];
  for (let k = 0; k < values.length; k += 2) points.push([values[k], values[k + 1]]);
  return { points, width };
}

/** A loop that can be driven, another one each time. */
export function exampleLine() {
  const [lobes, phase, size] = [2 + Math.floor(3 * Math.random()), 6.28 * Math.random(), 0.9 + 0.3 * Math.random()];
  return Array.from({ length: 18 }, (_, k) => {
    const angle = (2 * Math.PI * k) / 18;
    const radius = size * 120 * (1 + 0.28 * Math.sin(lobes * angle + phase));
    return [1.35 * radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

/** How far the pointer went (m). */
export function strokeLength(stroke) {
  let metres = 0;
  for (let k = 1; k < stroke.length; k += 1)
    metres += Math.hypot(stroke[k][0] - stroke[k - 1][0], stroke[k][1] - stroke[k - 1][1]);
  return metres;
}

/** A freehand line as a closed line of evenly spaced points. */
export function controlPoints(stroke) {
  const closed = [...stroke, stroke[0]];
  const lengths = [0];
  for (let k = 1; k < closed.length; k += 1)
    lengths.push(lengths[k - 1] + Math.hypot(closed[k][0] - closed[k - 1][0], closed[k][1] - closed[k - 1][1]));
  const total = lengths.at(-1);
  if (total < MIN_LENGTH_M) return [];
  const count = Math.max(MIN_POINTS, Math.min(MAX_POINTS, Math.round(total / POINT_SPACING_M)));
  let [points, k] = [[], 0];
  for (let n = 0; n < count; n += 1) {
    const at = (n * total) / count;
    while (lengths[k + 1] < at) k += 1;
    const fraction = (at - lengths[k]) / (lengths[k + 1] - lengths[k] || 1);
    points.push([0, 1].map((axis) => closed[k][axis] + fraction * (closed[k + 1][axis] - closed[k][axis])));
  }
  // A hand trembles: each point moves a little towards the middle of its neighbours.
  for (let pass = 0; pass < 2; pass += 1) {
    points = points.map((point, n) =>
      point.map((value, axis) => 0.5 * value + 0.25 * (points.at(n - 1)[axis] + points[(n + 1) % points.length][axis])),
    );
  }
  return points;
}

/** A smooth closed line through the points (Catmull-Rom). */
export function smooth(points) {
  const line = [];
  points.forEach((b, n) => {
    const [a, c, d] = [points.at(n - 1), points[(n + 1) % points.length], points[(n + 2) % points.length]];
    for (let k = 0; k < 8; k += 1) {
      const t = k / 8;
      line.push(
        [0, 1].map(
          (axis) =>
            0.5 *
            (2 * b[axis] +
              (c[axis] - a[axis]) * t +
              (2 * a[axis] - 5 * b[axis] + 4 * c[axis] - d[axis]) * t * t +
              (3 * b[axis] - a[axis] - 3 * c[axis] + d[axis]) * t * t * t),
        ),
      );
    }
  });
  return line;
}
