// The surroundings of a road, made of the road's own data: a fast one is an aerodrome with a runway, one that turns all
// the time a ridge with rocks and pines, any other a harbour with the sea on its longest side.

import { COLOURS } from './colours.js';

const FAST_RADPKM = 8; // of turning; as in tools/describe_generated.py
const TECHNICAL_RADPKM = 12.6;
const COAST_M = 13; // from the track's walls to the sea
const RUNWAY_M = 44; // wide
const PIER_EVERY_M = 110;

/** The theme of a track: aerodrome, harbour or ridge. */
export function themeOf({ curvature }) {
  const turning = (1000 * curvature.reduce((sum, one) => sum + Math.abs(one), 0)) / curvature.length;
  if (turning < FAST_RADPKM) return 'aerodrome';
  return turning > TECHNICAL_RADPKM ? 'ridge' : 'harbour';
}

/** The sea or the runway of a theme: what it covers, and how it is painted. */
export function makeGround(track, theme) {
  if (theme === 'harbour') return new Sea(track);
  return theme === 'aerodrome' ? new Runway(track) : new Slope();
}

/** Slopes of a ridge: nothing is in the way of trees and rocks. */
class Slope {
  covers() {
    return false;
  }

  paint() {}
}

/** Water beyond the side of the track that runs along its edge the longest, with piers and boats. */
class Sea {
  constructor({ box, wallLeft, wallRight }) {
    const sides = [
      { out: [1, 0], edge: box.x1, across: [box.y0, box.y1] },
      { out: [-1, 0], edge: -box.x0, across: [box.y0, box.y1] },
      { out: [0, 1], edge: box.y1, across: [box.x0, box.x1] },
      { out: [0, -1], edge: -box.y0, across: [box.x0, box.x1] },
    ];
    const along = ({ out, edge }) => {
      let count = 0;
      for (const wall of [wallLeft, wallRight])
        for (let k = 0; k < wall.x.length; k += 4) count += edge - wall.x[k] * out[0] - wall.y[k] * out[1] < 40;
      return count;
    };
    const side = sides.reduce((best, one) => (along(one) > along(best) ? one : best));
    Object.assign(this, side);
    this.piers = [];
    for (let u = side.across[0] + 30; u < side.across[1]; u += PIER_EVERY_M) this.piers.push(u);
  }

  /** How far out the coast is, at a place along it. */
  coast(u) {
    return this.edge + COAST_M + 4 * Math.sin(u / 47) + 2 * Math.sin(u / 17 + 1);
  }

  /** A place in the world: along the coast, and out. */
  at(u, v) {
    return this.out[0] ? [this.out[0] * v, u] : [u, this.out[1] * v];
  }

  covers(x, y, margin = 6) {
    const v = x * this.out[0] + y * this.out[1];
    return v > this.coast(this.out[0] ? y : x) - margin;
  }

  paint(context) {
    const [low, high] = [this.across[0] - 600, this.across[1] + 600];
    const water = new Path2D();
    for (let u = low; u <= high; u += 8) water.lineTo(...this.at(u, this.coast(u)));
    water.lineTo(...this.at(high, this.edge + 1500));
    water.lineTo(...this.at(low, this.edge + 1500));
    water.closePath();
    context.fillStyle = COLOURS.water;
    context.fill(water);
    context.strokeStyle = COLOURS.shore;
    context.lineWidth = 7;
    context.stroke(water);
    for (const u of this.piers) this.paintPier(context, u);
  }

  paintPier(context, u) {
    const start = this.coast(u) - 4;
    const rectangle = (u0, v0, width, length, colour) => {
      const path = new Path2D();
      for (const [a, b] of [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1],
      ])
        path.lineTo(...this.at(u0 + a * width, v0 + b * length));
      path.closePath();
      context.fillStyle = colour;
      context.fill(path);
    };
    rectangle(u - 2.5, start, 5, 46, COLOURS.concrete);
    for (const [side, away] of [
      [1, 14],
      [-1, 24],
      [1, 34],
    ]) {
      rectangle(u + side * 6 - 2, start + away, 4, 9, COLOURS.wall);
      rectangle(u + side * 6 - 1.1, start + away + 2.5, 2.2, 3.5, COLOURS.building);
    }
  }
}

/** An old runway through the middle of the track, along its longest straight; the track crosses it. */
class Runway {
  constructor({ box, curvature, tangentX, tangentY }) {
    let best = [0, 0];
    let first = 0;
    for (let k = 0; k < curvature.length; k += 1) {
      if (Math.abs(curvature[k]) > 1 / 300) first = k + 1;
      else if (k - first > best[1]) best = [first, k - first];
    }
    const middle = best[0] + Math.floor(best[1] / 2);
    this.direction = [tangentX[middle], tangentY[middle]];
    this.centre = [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2];
    this.half = 0.62 * Math.hypot(box.x1 - box.x0, box.y1 - box.y0);
  }

  covers(x, y, margin = 6) {
    const [dx, dy] = [x - this.centre[0], y - this.centre[1]];
    const [u, v] = [dx * this.direction[0] + dy * this.direction[1], dy * this.direction[0] - dx * this.direction[1]];
    return Math.abs(u) < this.half + margin && Math.abs(v) < RUNWAY_M / 2 + margin;
  }

  paint(context, scale) {
    context.save();
    context.translate(...this.centre);
    context.rotate(Math.atan2(this.direction[1], this.direction[0]));
    context.fillStyle = COLOURS.concrete;
    context.fillRect(-this.half, -RUNWAY_M / 2, 2 * this.half, RUNWAY_M);
    if (scale > 0.4) {
      context.fillStyle = COLOURS.edge;
      for (let u = -this.half + 70; u < this.half - 70; u += 45) context.fillRect(u, -0.6, 25, 1.2);
      for (const end of [-1, 1])
        for (let k = -4; k < 4; k += 1) context.fillRect(end * (this.half - 30) - 12, (k + 0.25) * 4.6, 24, 2.3);
    }
    context.restore();
  }
}
