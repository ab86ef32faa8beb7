// A periodic cubic spline through points, with positions by arc length: the arithmetic of tracks/geometry/spline.py in
// the same order, so that a road drawn here is the server's road to the last bit.

// Five-point Gauss-Legendre quadrature on [0, 1], exact to degree nine.
const GAUSS = [
  [0.046910077030668, 0.11846344252809454],
  [0.23076534494715845, 0.23931433524968324],
  [0.5, 0.28444444444444444],
  [0.7692346550528415, 0.23931433524968324],
  [0.953089922969332, 0.11846344252809454],
];

export class Spline {
  /** Through points `x`, `y` (m), parametrised by chord length. */
  constructor(x, y) {
    const size = x.length;
    const next = (k) => (k + 1) % size;
    const dx = x.map((value, k) => x[next(k)] - value);
    const dy = y.map((value, k) => y[next(k)] - value);
    this.chord = dx.map((value, k) => Math.sqrt(value * value + dy[k] * dy[k]));
    const [bendX, bendY] = secondDerivatives(
      this.chord,
      dx.map((value, k) => value / this.chord[k]),
      dy.map((value, k) => value / this.chord[k]),
    );
    this.x = pieces(x, dx, this.chord, bendX);
    this.y = pieces(y, dy, this.chord, bendY);
    this.start = [0];
    for (let k = 0; k < size; k += 1) this.start.push(this.start[k] + this.arc(k, this.chord[k]));
  }

  get length() {
    return this.start.at(-1);
  }

  position(i, u) {
    const at = (c) => c[0][i] + u * (c[1][i] + u * (c[2][i] + u * c[3][i]));
    return [at(this.x), at(this.y)];
  }

  velocity(i, u) {
    const at = (c) => c[1][i] + u * (2 * c[2][i] + u * (3 * c[3][i]));
    return [at(this.x), at(this.y)];
  }

  acceleration(i, u) {
    const at = (c) => 2 * c[2][i] + u * (6 * c[3][i]);
    return [at(this.x), at(this.y)];
  }

  speed(i, u) {
    const [vx, vy] = this.velocity(i, u);
    return Math.sqrt(vx * vx + vy * vy);
  }

  /** Arc length from the start of piece i to u. */
  arc(i, u) {
    let total = 0;
    for (const [node, weight] of GAUSS) total += weight * this.speed(i, node * u);
    return total * u;
  }

  /** Step, pieces and parameters of nodes a uniform step apart, the first on point 0. */
  uniform(spacing, minNodes) {
    const count = Math.max(roundEven(this.length / spacing), minNodes);
    const step = this.length / count;
    const nodes = [];
    let piece = 0;
    for (let k = 0; k < count; k += 1) {
      const s = k * step;
      while (piece < this.chord.length - 1 && this.start[piece + 1] <= s) piece += 1;
      const rest = s - this.start[piece];
      let u = (rest / (this.start[piece + 1] - this.start[piece])) * this.chord[piece];
      for (let round = 0; round < 4; round += 1) {
        u -= (this.arc(piece, u) - rest) / Math.max(this.speed(piece, u), 1e-6);
        u = Math.min(Math.max(u, 0), this.chord[piece]);
      }
      nodes.push([piece, u]);
    }
    return [step, nodes];
  }

  /** The points' values at u of piece i, linear in arc length. */
  between(values, i, u) {
    const fraction = this.arc(i, u) / (this.start[i + 1] - this.start[i]);
    return values[i] + fraction * (values[(i + 1) % values.length] - values[i]);
  }
}

/** To a whole number; halves to the even one. */
export function roundEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 ? floor + 1 : floor;
}

function pieces(value, rise, chord, bend) {
  const after = (k) => bend[(k + 1) % bend.length];
  return [
    value,
    rise.map((one, k) => one / chord[k] - (chord[k] * (2 * bend[k] + after(k))) / 6),
    bend.map((one) => 0.5 * one),
    bend.map((one, k) => (after(k) - one) / (6 * chord[k])),
  ];
}

/** Second derivatives at the points: a cyclic tridiagonal system, solved with the Sherman-Morrison formula. */
function secondDerivatives(chord, slopeX, slopeY) {
  const size = chord.length;
  const before = chord.map((_, k) => chord[(k + size - 1) % size]);
  const [corner] = before;
  const diagonal = chord.map((one, k) => 2 * (before[k] + one));
  const gamma = -diagonal[0];
  diagonal[0] -= gamma;
  diagonal[size - 1] -= (corner * corner) / gamma;
  const unit = new Array(size).fill(0);
  [unit[0], unit[size - 1]] = [gamma, corner];
  const change = (slope) => slope.map((one, k) => 6 * (one - slope[(k + size - 1) % size]));
  const [x, y, z] = solve(before, diagonal, chord, [change(slopeX), change(slopeY), unit]);
  const scale = 1 + z[0] + (corner * z[size - 1]) / gamma;
  const bend = (one) => {
    const factor = (one[0] + (corner * one[size - 1]) / gamma) / scale;
    return one.map((value, k) => value - factor * z[k]);
  };
  return [bend(x), bend(y)];
}

/** Thomas algorithm for several right-hand sides. */
function solve(lower, diagonal, upper, sides) {
  const size = diagonal.length;
  const [ratios, pivots] = [new Array(size).fill(0), new Array(size).fill(diagonal[0])];
  for (let k = 1; k < size; k += 1) {
    ratios[k] = lower[k] / pivots[k - 1];
    pivots[k] = diagonal[k] - ratios[k] * upper[k - 1];
  }
  return sides.map((side) => {
    const value = [...side];
    for (let k = 1; k < size; k += 1) value[k] -= ratios[k] * value[k - 1];
    value[size - 1] /= pivots[size - 1];
    for (let k = size - 2; k >= 0; k -= 1) value[k] = (value[k] - upper[k] * value[k + 1]) / pivots[k];
    return value;
  });
}
