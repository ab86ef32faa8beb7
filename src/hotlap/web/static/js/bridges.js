// Bridges: where a road crosses itself, its later part goes over the earlier one.

import { COLOURS } from './colours.js';

const STEP = 4; // nodes: crossings are looked for this coarsely
const APART = 20; // nodes along the road between parts that may cross
const MARGIN_M = 5; // of deck beyond the walls below
const SHADOW_M = 2.2;

/** Whether two stretches of the centreline cross. */
function isCrossing(x, y, i, j, k, l) {
  const side = (a, b, c) => (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
  return side(i, j, k) > 0 !== side(i, j, l) > 0 && side(k, l, i) > 0 !== side(k, l, j) > 0;
}

/** The bridges of a track: the nodes of the deck, and those under it. */
export function findBridges(track) {
  const { numNodes, stepM } = track;
  const { x, y } = track.centre;
  const next = (k) => (k + STEP) % numNodes;
  const found = [];
  for (let i = 0; i < numNodes; i += STEP) {
    for (let k = i + APART; k < numNodes && numNodes - k + i > APART; k += STEP) {
      if (Math.abs(x[i] - x[k]) + Math.abs(y[i] - y[k]) > 4 * STEP * stepM) continue;
      if (isCrossing(x, y, i, next(i), k, next(k))) found.push(makeBridge(track, i, k));
    }
  }
  return found;
}

function makeBridge(track, below, above) {
  const { tangentX, tangentY, stepM, numNodes } = track;
  const sine = Math.abs(tangentX[below] * tangentY[above] - tangentY[below] * tangentX[above]);
  const reach = (node, other) => {
    const across = Math.hypot(
      track.wallLeft.x[other] - track.wallRight.x[other],
      track.wallLeft.y[other] - track.wallRight.y[other],
    );
    return Math.ceil((0.5 * across + MARGIN_M) / Math.max(0.35, sine) / stepM);
  };
  const nodes = (middle, count) =>
    Array.from({ length: 2 * count + 1 }, (_, k) => (middle + k - count + numNodes) % numNodes);
  const deck = nodes(above, reach(above, below));
  return { deck, under: new Set(nodes(below, reach(below, above))), paths: deckPaths(track, deck) };
}

function deckPaths(track, deck) {
  const line = (edge) => {
    const path = new Path2D();
    for (const node of deck) path.lineTo(edge.x[node], edge.y[node]);
    return path;
  };
  const band = (left, right) => {
    const path = line(left);
    for (const node of [...deck].reverse()) path.lineTo(right.x[node], right.y[node]);
    path.closePath();
    return path;
  };
  return {
    whole: band(track.wallLeft, track.wallRight),
    road: band(track.left, track.right),
    edges: [line(track.left), line(track.right)],
    walls: [line(track.wallLeft), line(track.wallRight)],
  };
}

/** Paint a deck; the context's unit is a metre, `px` a pixel in metres. */
export function paintBridge(context, { paths }, px) {
  context.lineCap = 'butt';
  for (const wall of paths.walls) {
    context.strokeStyle = COLOURS.shadow;
    context.lineWidth = 2 * SHADOW_M;
    context.stroke(wall);
  }
  context.fillStyle = COLOURS.deck;
  context.fill(paths.whole);
  context.fillStyle = COLOURS.road;
  context.fill(paths.road);
  context.strokeStyle = COLOURS.edge;
  context.lineWidth = Math.max(0.22, 0.9 * px);
  for (const edge of paths.edges) context.stroke(edge);
  context.strokeStyle = COLOURS.wall;
  context.lineWidth = Math.max(0.9, 1.6 * px);
  for (const wall of paths.walls) context.stroke(wall);
}

/** Draw the decks once more, over cars that pass under them. */
export function drawOver(context, camera, bridges) {
  const [cos, sin] = [Math.cos(camera.turn) * camera.scale, Math.sin(camera.turn) * camera.scale];
  for (const bridge of bridges) {
    context.setTransform(cos, sin, sin, -cos, ...camera.toScreen(0, 0));
    paintBridge(context, bridge, 1 / camera.scale);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}
