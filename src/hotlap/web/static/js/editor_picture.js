// The picture of a drawing: its line and points, and the empty grid under them.

import { COLOURS, KINDS } from './colours.js';
import { smooth } from './drawn_line.js';

const GRID_M = 50;
const MARGIN_M = 20; // around a line: half the road and what is beside it

/** How far a line with its road goes from the origin to east or west, and to north or south (m). */
export function reachOf(points) {
  return [0, 1].map((k) => MARGIN_M + Math.max(...points.map((point) => Math.abs(point[k]))));
}

/** The line with its points, a line that was refused, and the one that is being drawn. */
export function drawHandles(draw, context, camera) {
  const { dpr } = draw.app.stage;
  const trace = (line, colour, isClosed) => {
    context.strokeStyle = colour;
    context.lineWidth = 2.5 * dpr;
    context.lineJoin = 'round';
    context.beginPath();
    for (const point of line) context.lineTo(...camera.toScreen(...point));
    if (isClosed) context.closePath();
    context.stroke();
  };
  if (draw.points.length) trace(smooth(draw.points), draw.hasRoad ? 'rgba(255,198,64,.55)' : COLOURS.accent, true);
  if (draw.refused) trace(smooth(draw.refused.points), COLOURS.loss, true);
  if (draw.stroke) trace(draw.stroke, COLOURS.text, false);
  draw.points.forEach(([x, y], k) => {
    const [sx, sy] = camera.toScreen(x, y);
    const isFault = draw.fault?.point === k;
    context.fillStyle = isFault ? COLOURS.loss : k === 0 ? KINDS.optimal : COLOURS.accent;
    context.strokeStyle = COLOURS.background;
    context.lineWidth = 2 * dpr;
    context.beginPath();
    context.arc(sx, sy, (isFault ? 9 : k === draw.held ? 8 : 6) * dpr, 0, 7);
    context.fill();
    context.stroke();
  });
}

/** The drawing on an empty grid, where there is no road. */
export function drawGrid(draw) {
  const { context, camera, dpr } = draw.app.stage;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = COLOURS.ground;
  context.fillRect(0, 0, camera.width, camera.height);
  context.strokeStyle = COLOURS.grid;
  context.lineWidth = dpr;
  context.beginPath();
  const [x0, y0] = camera.toWorld(0, camera.height);
  for (let x = Math.ceil(x0 / GRID_M) * GRID_M; (x - x0) * camera.scale < camera.width; x += GRID_M) {
    context.moveTo(camera.toScreen(x, 0)[0], 0);
    context.lineTo(camera.toScreen(x, 0)[0], camera.height);
  }
  for (let y = Math.ceil(y0 / GRID_M) * GRID_M; (y - y0) * camera.scale < camera.height; y += GRID_M) {
    context.moveTo(0, camera.toScreen(0, y)[1]);
    context.lineTo(camera.width, camera.toScreen(0, y)[1]);
  }
  context.stroke();
  if (!draw.points.length && !draw.stroke && !draw.refused) writeHint(context, camera, dpr);
  drawHandles(draw, context, camera);
}

/** Where to begin, on the empty grid. */
function writeHint(context, camera, dpr) {
  const isWide = camera.width > camera.height; // the panel is beside the drawing, else above it
  const [x, y] = [(isWide ? 0.62 : 0.5) * camera.width, (isWide ? 0.5 : 0.62) * camera.height];
  const radius = Math.min(0.25 * camera.width, 0.25 * camera.height);
  context.strokeStyle = context.fillStyle = COLOURS.hint;
  context.lineWidth = 3 * dpr;
  context.setLineDash([12 * dpr, 10 * dpr]);
  context.beginPath();
  context.ellipse(x, y, 1.6 * radius, radius, 0, 0, 2 * Math.PI);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.font = `700 ${22 * dpr}px Inter, sans-serif`;
  context.fillText('Draw a loop here', x, y);
}
