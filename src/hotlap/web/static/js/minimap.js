// A small map of a track: for thumbnails and the minimap.

import { COLOURS } from './colours.js';

const PARTS = 8; // between two points of an outline

/** Draw the map on a canvas of its own; returns its projection. */
export function drawMap(canvas, track, { road = COLOURS.text, width = 2.4, dpr = 1 } = {}) {
  const context = canvas.getContext('2d');
  const { box, centre } = track;
  const margin = 6 * dpr;
  const scale = Math.min(
    (canvas.width - 2 * margin) / (box.x1 - box.x0),
    (canvas.height - 2 * margin) / (box.y1 - box.y0),
  );
  const project = (x, y) => [
    canvas.width / 2 + (x - (box.x0 + box.x1) / 2) * scale,
    canvas.height / 2 - (y - (box.y0 + box.y1) / 2) * scale,
  ];
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.lineJoin = 'round';
  context.strokeStyle = road;
  context.lineWidth = width * dpr;
  context.beginPath();
  for (let k = 0; k < centre.x.length; k += 4) context.lineTo(...project(centre.x[k], centre.y[k]));
  context.closePath();
  context.stroke();
  const [sx, sy] = project(centre.x[0], centre.y[0]);
  context.fillStyle = COLOURS.accent;
  context.beginPath();
  context.arc(sx, sy, 2.6 * dpr, 0, 7);
  context.fill();
  return project;
}

/** The same of a list's outline: x and y by turns, too few points for a line without corners. */
export function drawShape(canvas, shape, options) {
  const count = shape.length / 2;
  const at = (k, axis) => shape[2 * ((k + count) % count) + axis];
  const centre = { x: [], y: [] };
  const box = { x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
  for (let k = 0; k < count; k += 1) {
    for (let part = 0; part < PARTS; part += 1) {
      const t = part / PARTS;
      // Catmull and Rom's curve through the points.
      const [x, y] = [0, 1].map((axis) => {
        const [a, b, c, d] = [k - 1, k, k + 1, k + 2].map((one) => at(one, axis));
        return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
      });
      centre.x.push(x);
      centre.y.push(y);
      Object.assign(box, { x0: Math.min(box.x0, x), x1: Math.max(box.x1, x) });
      Object.assign(box, { y0: Math.min(box.y0, y), y1: Math.max(box.y1, y) });
    }
  }
  return drawMap(canvas, { box, centre }, options);
}
