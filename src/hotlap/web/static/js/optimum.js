// The optimal lap of a track: solved by the server, followed until it is there, and put on the track.

import { lapText } from './format.js';

const POLL_MS = 1000;

/** Let the server solve a lap and make the driver that follows it, and tell in one line how far it is; the last answer,
 * or null. The lap itself is there earlier: `known` is called with the first answer that has it.
 */
export async function solveOptimum(server, id, isWanted, tell, known = () => {}) {
  const url = `api/tracks/${encodeURIComponent(id)}/optimal`;
  await server.post(url);
  let isKnown = false;
  for (;;) {
    const answer = await server.get(url);
    if (!isWanted()) return null;
    if (answer.line && !isKnown) known(answer);
    isKnown = Boolean(answer.line);
    if (answer.state === 'solved') {
      tell(timesText(answer));
      return answer;
    }
    if (answer.state === 'failed') {
      tell(answer.message);
      return null;
    }
    const percent = `${Math.round(100 * (answer.progress || 0))} %`;
    tell(isKnown ? `${timesText(answer)} Making its driver: ${percent}` : `Solving the optimal lap: ${percent}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

function timesText({ lap_time_sec: flying, standing_lap_time_sec: standing }) {
  return `Optimal lap ${lapText(flying)}, from standing ${lapText(standing)}.`;
}

/** Give a track that is loaded the lap that was solved meanwhile. */
export function putOptimum(track, { line, lap_time_sec: flying, standing_lap_time_sec: standing }) {
  const [x, y, speed] = [line.x_m, line.y_m, line.speed_mps].map((column) => new Float32Array(column));
  Object.assign(track, {
    line: { x, y, speed },
    optimal_lap_time_sec: flying,
    optimal_standing_lap_time_sec: standing,
  });
}
