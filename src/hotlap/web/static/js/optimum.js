// The optimal lap of a track: solved by the server, followed until it is there, and put on the track.

import { lapText } from './format.js';

const POLL_MS = 1000;

/** Let the server solve a lap and tell in one line how far it is; the solved lap, or null. */
export async function solveOptimum(server, id, isWanted, tell) {
  const url = `api/tracks/${encodeURIComponent(id)}/optimal`;
  await server.post(url);
  for (;;) {
    const answer = await server.get(url);
    if (!isWanted()) return null;
    if (answer.state === 'solved') {
      tell(`Optimal lap ${lapText(answer.lap_time_sec)}, from standing ${lapText(answer.standing_lap_time_sec)}.`);
      return answer;
    }
    if (answer.state === 'failed') {
      tell(answer.message);
      return null;
    }
    tell(`Solving the optimal lap: ${Math.round(100 * (answer.progress || 0))} %`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
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
