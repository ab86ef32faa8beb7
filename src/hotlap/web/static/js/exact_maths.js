// Functions with the same bits in every browser and in Python: of plain sums, products, quotients and square roots.
// `Math.sin` and its like may differ in the last bit from one browser to another.

const QUARTER_TURN = Math.PI / 2;

/** The sine and the cosine of an angle (rad). */
export function turn(angle) {
  const quarters = Math.floor(angle / QUARTER_TURN + 0.5);
  const x = angle - quarters * QUARTER_TURN;
  const y = x * x;
  const sine = x * (1 - (y / 6) * (1 - (y / 20) * (1 - (y / 42) * (1 - (y / 72) * (1 - y / 110)))));
  const cosine = 1 - (y / 2) * (1 - (y / 12) * (1 - (y / 30) * (1 - (y / 56) * (1 - y / 90))));
  if ((quarters & 3) === 0) return [sine, cosine];
  if ((quarters & 3) === 1) return [cosine, -sine];
  return (quarters & 3) === 2 ? [-sine, -cosine] : [-cosine, sine];
}

/** The angle (rad) of a slope, from -π/2 to π/2. */
export function slopeAngle(slope) {
  if (Math.abs(slope) > 1) return Math.sign(slope) * QUARTER_TURN - slopeAngle(1 / slope);
  // Half the angle twice, where the series is short.
  const half = (value) => value / (1 + Math.sqrt(1 + value * value));
  const x = half(half(slope));
  const y = x * x;
  return 4 * x * (1 - y * (1 / 3 - y * (1 / 5 - y * (1 / 7 - y * (1 / 9 - y / 11)))));
}

/** The length of a vector. */
export const lengthOf = (x, y) => Math.sqrt(x * x + y * y);

/** Nearly normal numbers of a generator of its own: the sum of four even ones. */
export function makeNoise(seed) {
  let state = (seed * 2654435761 + 1) >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 1) / 4294967297;
  };
  return () => (uniform() + uniform() + uniform() + uniform() - 2) * 1.7320508075688772;
}
