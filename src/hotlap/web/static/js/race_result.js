// The panel at the end of a race: verdict, medal, laps, and what to do next.

import { MEDALS } from './colours.js';
import { deltaText, find, lapText, make } from './format.js';
import { recall, remember } from './storage.js';

/** Show what came of a race; returns the line that tells of the board. */
export function showResult(race, { run, best, medal, text, replay, verdict }) {
  const rival = race.ghost?.run.best;
  const against = rival ? `${deltaText(best.time - rival.time, 3)} s against ${race.ghost.name}` : '';
  const badge = medal ? make('div', { class: 'medal', text: medal }) : null;
  if (badge) badge.style.background = MEDALS[medal];
  const status = make('p', { class: 'hint', role: 'status' });
  const name = make('input', {
    type: 'text',
    maxlength: 32,
    value: recall('name', 'You'),
    onchange: (event) => remember('name', event.target.value.trim() || 'You'),
  });
  find('#overlay').replaceChildren(
    make(
      'div',
      { class: 'panel result', id: 'result' },
      badge,
      make('h1', { text: verdict }),
      make('div', { class: 'big-lap', 'data-seconds': String(best.time), text: lapText(best.time) }),
      make('p', { class: 'lead', text: against || 'Best lap' }),
      make(
        'table',
        {},
        make(
          'tbody',
          {},
          ...run.laps.map((one, k) =>
            make(
              'tr',
              { class: one === best ? 'mine' : null },
              make('td', { text: k ? `Lap ${k + 1}` : 'Standing lap' }),
              make('td', { class: 'number', text: lapText(one.time) }),
              make('td', { text: one.clean ? 'clean' : 'off the road or wall' }),
              make('td', {
                class: 'number',
                text: race.ghost?.run.laps[k] ? deltaText(one.time - race.ghost.run.laps[k].time, 3) : '',
              }),
            ),
          ),
        ),
      ),
      make(
        'div',
        { class: 'row' },
        make('button', { class: 'button main', onclick: () => race.restart() }, 'Again ', make('kbd', { text: 'R' })),
        make('button', { class: 'button', text: 'Share link', onclick: () => race.app.share(text) }),
        make('button', { class: 'button', text: 'Watch it', onclick: () => race.app.playReplay(replay) }),
      ),
      make('label', { class: 'field' }, 'Your name on the board, from the next race on', name),
      status,
    ),
  );
  find('#result .main').focus();
  return status;
}
