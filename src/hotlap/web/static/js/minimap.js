// A small map of a track: for thumbnails and the minimap.

import { COLOURS } from './colours.js';

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
