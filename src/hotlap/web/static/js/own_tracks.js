// Tracks that were drawn without a server: kept in this browser as lines, and built when they are wanted.

import { buildDrawing } from './road_builder.js';
import { recall, remember } from './storage.js';

const KEY = 'tracks';
// What a link may call its road: not as a track that ships.
const FREE_NAME = /^(?!(?:track|train|test)-\d)[a-z0-9][a-z0-9_-]{0,63}$/;

/** The drawings by id: {points, width_m}. */
const ownDrawings = () => recall(KEY, {});

export const findOwn = (id) => (hasOwn(id) ? ownDrawings()[id] : null);

export const hasOwn = (id) => Object.hasOwn(ownDrawings(), id);

/** The tracks as a list of tracks has them, as far as they are known without being built. */
export function listOwn() {
  return Object.keys(ownDrawings()).map((id) => ({ id, name: id, character: 'drawn', source: 'yours' }));
}

export function keepOwn(id, drawing) {
  remember(KEY, { ...ownDrawings(), [id]: drawing });
}

/** Keep a drawing that came with a link, once; the id that it has here. */
export function keepShared(drawing, wanted) {
  const own = ownDrawings();
  const same = Object.keys(own).find((id) => JSON.stringify(own[id]) === JSON.stringify(drawing));
  if (same) return same;
  const name = FREE_NAME.test(wanted) ? wanted : 'shared-track';
  let [id, number] = [name, 2];
  for (; Object.hasOwn(own, id); number += 1) id = `${name}-${number}`;
  keepOwn(id, drawing);
  return id;
}

/** The track file of an own track; an error where its line is no road. */
export async function buildOwn(id, description) {
  const answer = await buildDrawing(ownDrawings()[id], description, id);
  if (!answer.ok) throw new Error(answer.fault.text);
  return answer.buffer;
}
