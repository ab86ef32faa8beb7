// The panel beside a race: the ghost, the laps, the braking line, and the times to beat.

import { KINDS, MEDALS } from './colours.js';
import { find, lapText, make } from './format.js';
import { bestOn, remember } from './storage.js';

const dot = (colour, text) => {
  const mark = make('span', { class: 'dot' });
  mark.style.background = colour;
  return make('span', {}, mark, text);
};
const row = (label, value) => make('tr', {}, make('td', {}, label), make('td', { class: 'number', text: value }));

/** Show the choice of ghost, laps and braking line, and the times to beat. */
export function showOptions(race, ghosts) {
  const select = make(
    'select',
    {
      id: 'ghost',
      onchange: (event) => {
        race.wanted = event.target.value;
        race.isChosen = true;
        race.prepare();
      },
    },
    ...ghosts.map((one) => make('option', { value: one.id, text: one.name })),
  );
  select.value = race.wanted;
  const laps = make(
    'select',
    {
      id: 'laps',
      onchange: (event) => {
        race.numLaps = Number(event.target.value);
        remember('laps', race.numLaps);
        race.prepare();
      },
    },
    ...[1, 2, 3, 5].map((count) =>
      make('option', { value: count, text: count === 1 ? '1, standing start' : `${count}, the first from standing` }),
    ),
  );
  laps.value = race.numLaps;
  const line = make('input', {
    type: 'checkbox',
    onchange: (event) => {
      race.useLine = event.target.checked;
      remember('braking-line', race.useLine);
    },
  });
  line.checked = race.useLine;
  const { medals_sec: medals, optimal_lap_time_sec: optimum } = race.app.track;
  const own = bestOn(race.app.track.road, race.app.engine.physics);
  find('#side').replaceChildren(
    make(
      'div',
      { class: 'panel stack' },
      make('label', { class: 'field' }, 'Ghost', select),
      make('label', { class: 'field' }, 'Laps', laps),
      make('label', { class: 'check' }, line, 'Braking line'),
      make(
        'table',
        {},
        make(
          'tbody',
          {},
          ...Object.entries(medals || {}).map(([name, seconds]) => row(dot(MEDALS[name], name), lapText(seconds))),
          optimum ? row(dot('var(--optimum)', 'optimum'), lapText(optimum)) : null,
          row(dot(KINDS.human, 'your best'), own ? lapText(own.time) : '–'),
        ),
      ),
    ),
  );
}
