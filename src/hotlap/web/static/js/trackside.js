// What stands beside a road for those who drive on it: braking boards before corners, tyre walls outside tight bends,
// and the corners' numbers.

import { COLOURS } from './colours.js';

const BENT_RADPM = 1 / 150; // from here on a car turns in
const TIGHT_RADPM = 1 / 55;
const BOARDS_M = [50, 100, 150]; // before a corner, where the straight is so long
const MIN_ROOM_M = 2.2; // between road and wall, for a board
const TYRES_M = 1.5; // thick
const FROM_ROAD_M = 2.6;
const NUMBER_M = 6.5; // behind the wall

/** The boards, numbers and tyre walls of a track. */
export function findTrackside(track) {
  const { corners, stepM, numNodes } = track;
  const found = { boards: [], numbers: [], tyres: findTyres(track) };
  (corners || []).forEach(({ arc_m: arc }, number) => {
    const apex = Math.round(arc / stepM) % numNodes;
    found.numbers.push({ ...place(track, apex, 'number'), text: String(number + 1) });
    findBoards(track, apex, found.boards);
  });
  return found;
}

/** A place on the outside of a bend: on the road's edge, or behind the wall. */
function place(track, node, kind, sign = Math.sign(track.curvature[node]) || 1) {
  const [edge, wall] = sign > 0 ? [track.right, track.wallRight] : [track.left, track.wallLeft];
  const [dx, dy] = [edge.x[node] - track.centre.x[node], edge.y[node] - track.centre.y[node]];
  const width = Math.hypot(dx, dy) || 1;
  const room = Math.hypot(wall.x[node] - edge.x[node], wall.y[node] - edge.y[node]);
  const [from, out] = kind === 'number' ? [wall, NUMBER_M] : [edge, Math.min(FROM_ROAD_M, 0.55 * room)];
  return {
    x: from.x[node] + (dx / width) * out,
    y: from.y[node] + (dy / width) * out,
    angle: Math.atan2(track.tangentY[node], track.tangentX[node]),
    room,
  };
}

function findBoards(track, apex, boards) {
  const { curvature, numNodes, stepM } = track;
  const at = (k) => (k + 2 * numNodes) % numNodes;
  const sign = Math.sign(curvature[apex]) || 1;
  let turnIn = apex;
  while (apex - turnIn < numNodes / 2 && Math.abs(curvature[at(turnIn)]) > BENT_RADPM) turnIn -= 1;
  let begin = turnIn;
  while (turnIn - begin < numNodes / 2 && Math.abs(curvature[at(begin)]) <= BENT_RADPM) begin -= 1;
  for (const metres of BOARDS_M) {
    if ((turnIn - begin) * stepM < metres + 15) return;
    const board = place(track, at(turnIn - Math.round(metres / stepM)), 'board', sign);
    if (board.room > MIN_ROOM_M) boards.push({ ...board, text: String(metres) });
  }
}

/** Along the wall outside each tight bend. */
function findTyres(track) {
  const { curvature, numNodes } = track;
  const path = new Path2D();
  for (const [edge, wall, sign] of [
    [track.left, track.wallLeft, -1],
    [track.right, track.wallRight, 1],
  ]) {
    let isOn = false;
    for (let k = 0; k <= numNodes; k += 1) {
      const node = k % numNodes;
      const room = Math.hypot(wall.x[node] - edge.x[node], wall.y[node] - edge.y[node]);
      if (sign * curvature[node] > TIGHT_RADPM && room > 2 * TYRES_M) {
        const inward = (0.5 * TYRES_M) / room;
        const x = wall.x[node] + inward * (edge.x[node] - wall.x[node]);
        const y = wall.y[node] + inward * (edge.y[node] - wall.y[node]);
        if (isOn) path.lineTo(x, y);
        else path.moveTo(x, y);
        isOn = true;
      } else isOn = false;
    }
  }
  return path;
}

export function paintTyres(context, { tyres }) {
  context.lineCap = 'butt';
  context.lineWidth = TYRES_M;
  context.strokeStyle = '#23262b';
  context.stroke(tyres);
  context.strokeStyle = '#e9ebee';
  context.setLineDash([1.2, 4.8]);
  context.stroke(tyres);
  context.setLineDash([]);
}

export function paintSigns(context, tile, { boards, numbers }) {
  const isSeen = ({ x, y }) => x > tile.x0 - 6 && x < tile.x1 + 6 && y > tile.y0 - 6 && y < tile.y1 + 6;
  for (const board of boards) if (isSeen(board)) paintBoard(context, board);
  for (const number of numbers) if (isSeen(number)) paintNumber(context, number);
}

/** Write in the direction of driving; the canvas has y upwards. */
function write(context, text, size, colour) {
  context.scale(0.1, -0.1);
  context.font = `700 ${10 * size}px Inter, system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = colour;
  context.fillText(text, 0, 0.6 * size);
}

function paintBoard(context, { x, y, angle, text }) {
  context.save();
  context.translate(x, y);
  context.rotate(angle - Math.PI / 2);
  context.fillStyle = COLOURS.shadow;
  context.fillRect(-1.5, -1.3, 3.4, 2);
  context.fillStyle = '#f4f5f6';
  context.fillRect(-1.8, -1, 3.6, 2);
  write(context, text, 1.6, '#14181f');
  context.restore();
}

function paintNumber(context, { x, y, angle, text }) {
  context.save();
  context.translate(x, y);
  context.rotate(angle - Math.PI / 2);
  context.fillStyle = COLOURS.shadow;
  context.beginPath();
  context.arc(0.5, -0.6, 2.5, 0, 7);
  context.fill();
  context.fillStyle = '#14181f';
  context.beginPath();
  context.arc(0, 0, 2.5, 0, 7);
  context.fill();
  write(context, text, 2.6, '#ffc640');
  context.restore();
}
