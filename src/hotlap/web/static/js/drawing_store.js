// Where a drawing is checked and saved: by the server, or in the page itself where there is none.

import { make } from './format.js';
import { keepOwn } from './own_tracks.js';
import { buildDrawing } from './road_builder.js';
import { forgetTrack, parseTrack } from './tracks.js';

const HEADER = '# x_m,y_m,w_tr_right_m,w_tr_left_m';

/** What is wrong with a drawing, or its road: {ok, fault} or {ok, length_m, track}. */
export async function checkDrawing({ server, engine }, drawing) {
  const { description } = engine;
  if (!server.connected) {
    const answer = await buildDrawing(drawing, description);
    return answer.ok ? { ...answer, track: parseTrack(answer.buffer, description) } : answer;
  }
  const answer = await server.post('api/drawings/check', drawing);
  if (!answer.ok) return answer;
  const bytes = Uint8Array.from(atob(answer.track), (c) => c.charCodeAt(0));
  return { ...answer, track: parseTrack(bytes.buffer, description) };
}

/** Save a drawing as a track; `isOwn`: in place of what it was before. */
export async function saveDrawing({ server }, id, drawing, isOwn) {
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id))
    throw new Error('A name has letters from a to z, digits, - and _, and begins with a letter or digit.');
  if (server.connected) await server.post('api/tracks', { id, ...drawing, replace: isOwn });
  else keepOwn(id, drawing);
  forgetTrack(id);
}

/** Download a saved track as a table that other programs read too. */
export async function downloadTrack({ server, engine }, id, drawing) {
  if (server.connected) {
    make('a', { href: `api/tracks/${id}/centreline.csv`, download: `${id}.csv` }).click();
    return;
  }
  const { line } = await buildDrawing(drawing, engine.description);
  const rows = line.x.map((x, k) => [x, line.y[k], line.right[k], line.left[k]].map((one) => one.toFixed(3)).join(','));
  const file = new Blob([[HEADER, ...rows, ''].join('\n')], { type: 'text/csv' });
  const href = URL.createObjectURL(file);
  make('a', { href, download: `${id}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}
