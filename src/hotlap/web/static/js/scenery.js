// What surrounds a road: grass or slopes, trees, rocks and buildings, and the grain of the asphalt.

import { COLOURS } from './colours.js';

const STRIPE_M = 18; // of mown grass
const GRAIN_M = 9; // that the asphalt's grain repeats after
const CELL_M = 7; // in which one thing stands
const PATCH_M = 30; // of a slope
/** How many trees there are, of as many as there could be, and in which part of the cells rocks and buildings stand. */
const DENSITIES = {
  harbour: { trees: 0.55, rocks: 0, houses: 0.03 },
  aerodrome: { trees: 0.35, rocks: 0, houses: 0.006 },
  ridge: { trees: 1.1, rocks: 0.045, houses: 0 },
};

/** A random number that depends only on two whole numbers. */
function noise(i, j) {
  let h = (Math.imul(i, 374761393) + Math.imul(j, 668265263)) | 0;
  h = Math.imul(h ^ (h >>> 13), 1274126177);
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296;
}

let grainImage = null;

/** A pattern of light and dark specks, as asphalt has them. */
export function grain(context) {
  if (!grainImage) {
    const size = 96;
    grainImage = document.createElement('canvas');
    grainImage.width = grainImage.height = size;
    const pixels = new ImageData(size, size);
    for (let k = 0; k < size * size; k += 1) {
      const speck = noise(k, 17);
      pixels.data.set(
        [speck > 0.5 ? 255 : 0, speck > 0.5 ? 255 : 0, speck > 0.5 ? 255 : 0, 5 + 13 * noise(k, 5)],
        4 * k,
      );
    }
    grainImage.getContext('2d').putImageData(pixels, 0, 0);
  }
  const pattern = context.createPattern(grainImage, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(GRAIN_M / grainImage.width));
  return pattern;
}

/** What stands where no track is near, the same on every visit: trees, and the rocks or buildings of the theme. */
export function furnish(track, theme, ground) {
  const taken = new Set();
  const near = new Set();
  const mark = (set, x, y, reach) => {
    const [i, j, n] = [Math.floor(x / CELL_M), Math.floor(y / CELL_M), Math.ceil(reach / CELL_M)];
    for (let a = -n; a <= n; a += 1) for (let b = -n; b <= n; b += 1) set.add(`${i + a},${j + b}`);
  };
  for (let k = 0; k < track.numNodes; k += 2) {
    for (const wall of [track.wallLeft, track.wallRight]) mark(taken, wall.x[k], wall.y[k], 7);
    mark(taken, track.centre.x[k], track.centre.y[k], 7);
    if (k % 12 === 0) mark(near, track.centre.x[k], track.centre.y[k], 70);
  }
  const isFree = (i, j, reach) => {
    for (let a = -reach; a <= reach; a += 1)
      for (let b = -reach; b <= reach; b += 1) if (taken.has(`${i + a},${j + b}`)) return false;
    return true;
  };
  const found = { trees: [], rocks: [], houses: [] };
  const { trees: many, rocks: stony, houses: built } = DENSITIES[theme];
  for (const key of near) {
    const [i, j] = key.split(',').map(Number);
    const [x, y] = [(i + noise(i + 7, j)) * CELL_M, (j + noise(i, j + 7)) * CELL_M];
    if (taken.has(key) || ground.covers(x, y)) continue;
    const grove = noise(Math.floor(i / 5), Math.floor(j / 5) + 99);
    const draw = noise(i, j);
    if (noise(i + 31, j + 57) < built && isFree(i, j, 2) && !ground.covers(x, y, 14)) {
      found.houses.push({ x, y, width: 12 + 8 * draw, height: 8 + 4 * grove });
      mark(taken, x, y, 12);
    } else if (noise(i + 13, j + 17) < stony) found.rocks.push({ x, y, r: 1.2 + 2.4 * draw, turn: 7 * grove });
    else if (draw <= many * (0.16 + 0.5 * grove * grove)) {
      found.trees.push({ x, y, r: 1.6 + 2.6 * noise(i + 3, j + 5), isPine: theme === 'ridge' });
    }
  }
  found.trees = found.trees.filter((tree) => !found.houses.some((house) => isNear(tree, house)));
  return found;
}

const isNear = (tree, house) =>
  Math.abs(tree.x - house.x) < house.width / 2 + tree.r && Math.abs(tree.y - house.y) < house.height / 2 + tree.r;

/** Mown stripes, or the patches of a slope, and what stands there. */
export function paintGround(context, tile, scale, { theme, ground, things }) {
  context.fillStyle = COLOURS.groundSpeck;
  if (theme === 'ridge') paintPatches(context, tile);
  else
    for (let n = Math.floor(tile.x0 / STRIPE_M) - 1; n * STRIPE_M < tile.x1; n += 1)
      if (n % 2) context.fillRect(n * STRIPE_M, tile.y0 - 1, STRIPE_M, tile.y1 - tile.y0 + 2);
  ground.paint(context, scale);
  if (scale < 0.6) return;
  const isSeen = ({ x, y }, reach) =>
    x > tile.x0 - reach && x < tile.x1 + reach && y > tile.y0 - reach && y < tile.y1 + reach;
  for (const rock of things.rocks) if (isSeen(rock, 6)) paintRock(context, rock);
  for (const house of things.houses) if (isSeen(house, 22)) paintHouse(context, house);
  for (const tree of things.trees) if (isSeen(tree, 6)) paintTree(context, tree);
}

function paintPatches(context, tile) {
  for (let i = Math.floor(tile.x0 / PATCH_M) - 1; i * PATCH_M < tile.x1 + PATCH_M; i += 1) {
    for (let j = Math.floor(tile.y0 / PATCH_M) - 1; j * PATCH_M < tile.y1 + PATCH_M; j += 1) {
      if (noise(i, j + 41) > 0.55) continue;
      const [x, y] = [(i + noise(i, j)) * PATCH_M, (j + noise(j, i)) * PATCH_M];
      context.beginPath();
      context.ellipse(x, y, 9 + 12 * noise(i + 1, j), 5 + 6 * noise(i, j + 1), 3 * noise(i, j + 3), 0, 7);
      context.fill();
    }
  }
}

function disc(context, x, y, radius, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
}

function paintTree(context, { x, y, r, isPine }) {
  disc(context, x + 0.7, y - 0.9, r, COLOURS.shadow);
  if (isPine) {
    star(context, x, y, r, COLOURS.tree);
    star(context, x, y, 0.55 * r, COLOURS.treeLight);
  } else {
    disc(context, x, y, r, COLOURS.tree);
    disc(context, x - 0.25 * r, y + 0.3 * r, 0.55 * r, COLOURS.treeLight);
  }
}

/** A pine from above. */
function star(context, x, y, radius, colour) {
  context.fillStyle = colour;
  context.beginPath();
  for (let k = 0; k < 16; k += 1) {
    const [angle, reach] = [(k * Math.PI) / 8, k % 2 ? 0.68 * radius : radius];
    context.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
  }
  context.fill();
}

function paintRock(context, { x, y, r, turn }) {
  const corners = [0, 1.1, 2.3, 3.3, 4.4, 5.3].map((angle, k) => [angle + turn, (k % 2 ? 0.8 : 1) * r]);
  const stone = (dx, dy, size, colour) => {
    context.fillStyle = colour;
    context.beginPath();
    for (const [angle, reach] of corners)
      context.lineTo(x + dx + size * reach * Math.cos(angle), y + dy + size * reach * Math.sin(angle));
    context.fill();
  };
  stone(0.5, -0.6, 1, COLOURS.shadow);
  stone(0, 0, 1, COLOURS.rock);
  stone(-0.15 * r, 0.2 * r, 0.55, COLOURS.rockLight);
}

function paintHouse(context, { x, y, width, height }) {
  const [left, low] = [x - width / 2, y - height / 2];
  context.fillStyle = COLOURS.shadow;
  context.fillRect(left + 1.4, low - 1.8, width, height);
  context.fillStyle = COLOURS.building;
  context.fillRect(left, low, width, height);
  context.fillStyle = COLOURS.roof;
  context.fillRect(left, y, width, height / 2);
}
