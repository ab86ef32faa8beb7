// The visitor's own time trials, kept in this browser, and given as one file to whoever collects laps of people.

import { ownName } from './board.js';
import { make } from './format.js';
import { recall, remember } from './storage.js';

const KEY = 'drives';
const FORMAT = 'hotlap-board-1';
const MAX_CHARS = 2_000_000; // of all replays: the oldest are dropped

/** Keep a drive that counts: {track, physics, lap, lap_time_sec, clean, date, replay (text)}. */
export function keepDrive(drive) {
  const drives = [...recall(KEY, []), drive];
  let chars = drives.reduce((sum, one) => sum + one.replay.length, 0);
  while (chars > MAX_CHARS && drives.length > 1) chars -= drives.shift().replay.length;
  remember(KEY, drives);
}

/** A number by which drives of one browser are known as one person's; it says nothing else. */
function personCode() {
  const known = recall('person', null);
  if (known) return known;
  const code = crypto.getRandomValues(new Uint32Array(1))[0].toString(16).padStart(8, '0');
  remember('person', code);
  return code;
}

/** What the file holds: docs/benchmark.md describes it. */
export function givenFile() {
  const driver = ownName() || `person-${personCode()}`;
  return { format: FORMAT, entries: recall(KEY, []).map((drive) => ({ ...drive, driver, kind: 'human' })) };
}

/** A button that saves the file, and what is in it; null where nothing was driven yet. */
export function giveLaps() {
  const count = recall(KEY, []).length;
  if (!count) return null;
  const save = () => {
    const href = URL.createObjectURL(new Blob([JSON.stringify(givenFile())], { type: 'application/json' }));
    make('a', { href, download: 'hotlap-laps.json' }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10000);
  };
  const name = ownName() ? `your name here, ${ownName()}` : 'no name';
  return make(
    'div',
    { class: 'give' },
    make('button', {
      class: 'button',
      id: 'give-laps',
      text: `Save your ${count === 1 ? 'drive' : `${count} drives`} as a file`,
      onclick: save,
    }),
    make('p', {
      class: 'hint',
      text: [
        'For people who collect laps to measure what humans drive.',
        'The file has every time trial that you finished in this browser:',
        `track, date, inputs and best lap, and ${name}. Nothing is sent.`,
      ].join(' '),
    }),
  );
}
