// What surrounds a road: mown grass, trees, and the grain of the asphalt.

import { COLOURS } from './colours.js';

const STRIPE_M = 18; // of mown grass
const GRAIN_M = 9; // that the asphalt's grain repeats after

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

/** Trees where no track is near, the same on every visit. */
export function plantTrees(track) {
  const cell = 7;
  const taken = new Set();
  const near = new Set();
  const mark = (set, x, y, reach) => {
    const [i, j, n] = [Math.floor(x / cell), Math.floor(y / cell), Math.ceil(reach / cell)];
    for (let a = -n; a <= n; a += 1) for (let b = -n; b <= n; b += 1) set.add(`${i + a},${j + b}`);
  };
  for (let k = 0; k < track.numNodes; k += 2) {
    for (const wall of [track.wallLeft, track.wallRight]) mark(taken, wall.x[k], wall.y[k], 7);
    mark(taken, track.centre.x[k], track.centre.y[k], 7);
    if (k % 12 === 0) mark(near, track.centre.x[k], track.centre.y[k], 70);
  }
  const trees = [];
  for (const key of near) {
    if (taken.has(key)) continue;
    const [i, j] = key.split(',').map(Number);
    const grove = noise(Math.floor(i / 5), Math.floor(j / 5) + 99);
    if (noise(i, j) > 0.16 + 0.5 * grove * grove) continue;
    trees.push({
      x: (i + noise(i + 7, j)) * cell,
      y: (j + noise(i, j + 7)) * cell,
      r: 1.6 + 2.6 * noise(i + 3, j + 5),
    });
  }
  return trees;
}

/** Mown stripes and trees. */
export function paintGround(context, tile, scale, trees) {
  context.fillStyle = COLOURS.groundSpeck;
  for (let n = Math.floor(tile.x0 / STRIPE_M) - 1; n * STRIPE_M < tile.x1; n += 1)
    if (n % 2) context.fillRect(n * STRIPE_M, tile.y0 - 1, STRIPE_M, tile.y1 - tile.y0 + 2);
  if (scale < 0.6) return;
  for (const tree of trees) {
    if (tree.x < tile.x0 - 6 || tree.x > tile.x1 + 6 || tree.y < tile.y0 - 6 || tree.y > tile.y1 + 6) continue;
    context.fillStyle = COLOURS.shadow;
    context.beginPath();
    context.arc(tree.x + 0.7, tree.y - 0.9, tree.r, 0, 7);
    context.fill();
    context.fillStyle = COLOURS.tree;
    context.beginPath();
    context.arc(tree.x, tree.y, tree.r, 0, 7);
    context.fill();
    context.fillStyle = COLOURS.treeLight;
    context.beginPath();
    context.arc(tree.x - 0.25 * tree.r, tree.y + 0.3 * tree.r, 0.55 * tree.r, 0, 7);
    context.fill();
  }
}
