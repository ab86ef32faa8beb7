// Tracks that were drawn without a server: kept in this browser as lines, and built when they are wanted.

import { buildDrawing } from './road_builder.js';
import { recall, remember } from './storage.js';

const KEY = 'tracks';

/** The drawings by id: {points, width_m}. */
const ownDrawings = () => recall(KEY, {});

export const hasOwn = (id) => Object.hasOwn(ownDrawings(), id);

/** The tracks as a list of tracks has them, as far as they are known without being built. */
export function listOwn() {
  return Object.keys(ownDrawings()).map((id) => ({ id, name: id, character: 'drawn', source: 'yours' }));
}

export function keepOwn(id, drawing) {
  remember(KEY, { ...ownDrawings(), [id]: drawing });
}

/** The track file of an own track; an error where its line is no road. */
export async function buildOwn(id, description) {
  const answer = await buildDrawing(ownDrawings()[id], description, id);
  if (!answer.ok) throw new Error(answer.fault.text);
  return answer.buffer;
}
