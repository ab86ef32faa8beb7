// The corners of a drawn road and their names, as tracks/geometry/corners.py finds them.

const CORNER_CURVATURE = 1 / 150;
const CORNER_TURN_RAD = 0.35;
const CORNER_GAP_M = 12;
const DEGREE = Math.PI / 180;
const HAIRPIN_RAD = 135 * DEGREE;
const KINK_RAD = 50 * DEGREE;
const CHICANE_RAD = 75 * DEGREE;
const SWEEPER_RADIUS_M = 60;
const CHICANE_M = 60;

/** The corners in driving order: [{arc_m, name}]. */
export function findCorners({ curvature, step, size }) {
  const sign = curvature.map((bend) => (Math.abs(bend) > CORNER_CURVATURE ? Math.sign(bend) : 0));
  const straight = sign.indexOf(0);
  if (straight < 0) return [];
  const gap = Math.max(Math.round(CORNER_GAP_M / step), 1);
  const runs = [];
  for (let n = 0; n < size; n += 1) {
    const k = (n + straight) % size;
    if (!sign[k]) continue;
    const last = runs.at(-1)?.at(-1);
    const isSame = last !== undefined && sign[last] === sign[k] && (k - last + size) % size <= gap;
    if (isSame) runs.at(-1).push(k);
    else runs.push([k]);
  }
  const corners = runs
    .map((run) => {
      let sum = 0;
      const turning = run.map((k) => (sum += curvature[k]) * step);
      const turn = turning.at(-1);
      const middle = turning.findIndex((turned) => Math.abs(turned) >= 0.5 * Math.abs(turn));
      return { apex: run[middle], turn };
    })
    .filter((corner) => Math.abs(corner.turn) >= CORNER_TURN_RAD)
    .sort((a, b) => a.apex - b.apex);
  const names = corners.map((corner) => kindOf(corner, curvature));
  corners.forEach((corner, index) => {
    const after = (index + 1) % corners.length;
    const metres = ((corners[after].apex - corner.apex + size) % size) * step;
    const turns = [corner.turn, corners[after].turn];
    const isQuick = Math.max(...turns.map(Math.abs)) < CHICANE_RAD && metres < CHICANE_M;
    if (turns[0] * turns[1] < 0 && isQuick) names[index] = names[after] = 'chicane';
  });
  return corners.map((corner, k) => ({ arc_m: Math.round(corner.apex * step * 10) / 10, name: names[k] }));
}

function kindOf({ apex, turn }, curvature) {
  const side = turn > 0 ? 'left' : 'right';
  if (Math.abs(curvature[apex]) * SWEEPER_RADIUS_M < 1) return `${side} sweeper`;
  if (Math.abs(turn) >= HAIRPIN_RAD) return 'hairpin';
  return Math.abs(turn) < KINK_RAD ? `${side} kink` : side;
}
