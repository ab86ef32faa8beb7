// Where a lap lost time against another, corner by corner, as the reports have it: a corner's part of the road reaches
// halfway to its neighbours.

const SLOWER_MPS = 1.5; // less is no difference that a person could act on

/** The parts of the road around each corner: label, and from where to where (m). */
export function cornerParts(track) {
  const corners = [...(track.corners || [])].sort((a, b) => a.arc_m - b.arc_m);
  const length = track.length_m;
  return corners.map((corner, k) => {
    const before = corners[k - 1]?.arc_m ?? corners.at(-1).arc_m - length;
    const after = corners[k + 1]?.arc_m ?? corners[0].arc_m + length;
    return {
      label: `T${k + 1} ${corner.name}`,
      from: k ? (before + corner.arc_m) / 2 : 0, // a lap begins and ends at the line
      to: k + 1 < corners.length ? (corner.arc_m + after) / 2 : length,
    };
  });
}

/** Seconds and the slowest speed (m/s) of a run in a part of one of its laps (0 is the first). */
function drive(run, length, lap, { from, to }) {
  const at = (metre) => run.secondsAt(lap * length + metre);
  const [begin, end] = [at(from), at(Math.min(to, length - 1e-3))];
  let slowest = Infinity;
  for (let metre = Math.ceil(from); metre + 2 <= to; metre += 1) {
    const seconds = at(metre + 2) - at(metre);
    if (seconds > 0) slowest = Math.min(slowest, 2 / seconds);
  }
  return { seconds: begin === null || end === null ? null : end - begin, slowest };
}

/** Time lost in each corner of a lap against the same lap of another run, the largest loss first. */
export function findLosses(track, run, other, lap) {
  return cornerParts(track)
    .map((part) => {
      const [own, there] = [run, other].map((one) => drive(one, track.length_m, lap, part));
      if (own.seconds === null || there.seconds === null) return null;
      return { label: part.label, lost: own.seconds - there.seconds, slower: there.slowest - own.slowest };
    })
    .filter(Boolean)
    .sort((a, b) => b.lost - a.lost);
}

/** One sentence on what to do about the largest loss. */
export function advise(losses) {
  const [worst] = losses;
  if (!worst || worst.lost < 0.02) return 'No corner cost you time. Now do it again.';
  const name = worst.label.replace(/^T\d+ /, '');
  const corner = `the ${name} (${worst.label.split(' ')[0]})`;
  if (worst.slower > SLOWER_MPS)
    return `Most time is left in ${corner}: carry ${Math.round(3.6 * worst.slower)} km/h more through its middle.`;
  if (worst.slower < -SLOWER_MPS)
    return `Most time is left in ${corner}: go in slower, and be on the gas earlier on the way out.`;
  return `Most time is left in ${corner}: brake later before it, and be on the gas earlier after it.`;
}
