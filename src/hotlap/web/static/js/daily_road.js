// The generated tracks of a page without a server: each is a small file with its line, and the page builds its road.

import { unpackFile } from './packed_file.js';
import { packRoad } from './road_builder.js';

const GENERATED = /^(train|test)-\d{3}$/;
const roads = new Map();

/** The track's entry with its line; null where there is none. Loaded once. */
function fetchRoad(id) {
  if (!roads.has(id)) {
    const road = fetch(`data/${id}.road`).then((answer) => (answer.ok ? readRoad(answer) : null));
    road.catch(() => roads.delete(id));
    roads.set(id, road);
  }
  return roads.get(id);
}

/** What a road file holds. */
async function readRoad(answer) {
  return JSON.parse(new TextDecoder().decode(await unpackFile(await answer.arrayBuffer())));
}

/** Whether a page without a server has this track as a line only. */
export async function isLineOnly(id) {
  if (!GENERATED.test(id)) return false;
  const listed = await (await fetch('data/tracks.json')).json();
  return !listed.some((one) => one.id === id) && Boolean(await fetchRoad(id));
}

/** The track as a list of tracks has it; null where there is none. */
export async function roadEntry(id) {
  const road = GENERATED.test(id) ? await fetchRoad(id).catch(() => null) : null;
  return road ? { ...road, line: undefined } : null;
}

/** The track file of a generated track. */
export async function buildGenerated(id, description) {
  const { line, ...entry } = await fetchRoad(id);
  const columns = Object.fromEntries(Object.entries(line).map(([name, steps]) => [name, sumTwice(steps)]));
  const answer = await packRoad(columns, description, entry);
  if (answer.road !== entry.road) throw new Error('The road of this track is damaged. Another one is shown.');
  return answer.buffer;
}

/** Numbers in metres, of their second differences in millimetres. */
function sumTwice(steps) {
  let [step, value] = [0, 0];
  return steps.map((change) => {
    step += change;
    value += step;
    return value / 1000;
  });
}
