// The track of the day: by the date in UTC, so the same for everybody. The server computes the same.

import { make } from './format.js';
import { drawShape } from './minimap.js';

const DAY_MS = 24 * 60 * 60 * 1000;
const DAY_ONE = Date.UTC(2026, 0, 1);
const NUM_TRAIN = 100;
const NUM_TRACKS = 125;
const STRIDE = 47; // has no factor in common with 125: every track has its day before one comes again

/** The day and its track: {day: '2026-01-31', track: 'train-010'}. */
export function dailyTrack(now = Date.now()) {
  const days = Math.floor((now - DAY_ONE) / DAY_MS);
  const number = (((days * STRIDE) % NUM_TRACKS) + NUM_TRACKS) % NUM_TRACKS;
  const [split, index] = number < NUM_TRAIN ? ['train', number] : ['test', number - NUM_TRAIN];
  return { day: new Date(now).toISOString().slice(0, 10), track: `${split}-${String(index).padStart(3, '0')}` };
}

/** The day's track in a list of tracks, with its day; null where the page does not have it. */
export function findDaily(tracks, { day, track }) {
  const found = tracks.find((one) => one.id === track);
  return found ? { ...found, day } : null;
}

/** A button in the side panel that opens the day's track. */
export function dailyButton(app) {
  const { daily } = app;
  if (!daily || daily.id === app.track.id) return null;
  const canvas = make('canvas', { width: 104, height: 72, 'aria-hidden': 'true' });
  if (daily.shape) drawShape(canvas, daily.shape, { width: 2, dpr: 2 });
  return make(
    'button',
    { class: 'daily', id: 'daily', onclick: () => app.go('watch', { track: daily.id }) },
    canvas,
    make(
      'span',
      {},
      make('small', { text: 'Track of the day' }),
      make('b', { text: daily.name }),
      make('small', { text: `${Math.round(daily.length_m)} m, ${daily.character.split(':')[0]}` }),
    ),
  );
}
