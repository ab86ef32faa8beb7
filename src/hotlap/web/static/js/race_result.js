// The panel at the end of a race: verdict, medal, laps, where time was lost, and what to do next.

import { ownName } from './board.js';
import { MEDALS } from './colours.js';
import { deltaText, find, lapText, make } from './format.js';
import { advise, findLosses } from './lap_losses.js';
import { YOU } from './race_ghosts.js';
import { remember } from './storage.js';

const MAX_CORNERS = 3;

/** Show what came of a race; returns the line that tells of the board. */
export function showResult(race, { run, best, lap, medal, text, replay, share, verdict, next }) {
  const rival = race.ghost?.run.best;
  const against = rival ? `${deltaText(best.time - rival.time, 3)} s against ${race.ghost.name}` : '';
  const badge = medal ? make('div', { class: 'medal', text: medal }) : null;
  if (badge) badge.style.background = MEDALS[medal];
  const status = make('p', { class: 'hint', role: 'status' });
  const watch = () => race.app.playReplay({ ...replay, driver: ownName() || YOU });
  const isNewRung = next && next.id !== race.ghost?.id;
  find('#overlay').replaceChildren(
    make(
      'div',
      { class: 'panel result', id: 'result' },
      badge,
      make('h1', { text: verdict }),
      make('div', { class: 'big-lap', 'data-seconds': String(best.time), text: lapText(best.time) }),
      make('p', {
        class: 'lead',
        text: text ? against || 'Best lap' : 'You were put back on the road: it does not count.',
      }),
      lapTable(race, run, best),
      losses(race, run, lap),
      make(
        'div',
        { class: 'row' },
        make('button', { class: 'button main', onclick: () => race.restart() }, 'Again ', make('kbd', { text: 'R' })),
        isNewRung
          ? make('button', {
              class: 'button',
              'data-action': 'next-rung',
              text: `Next: ${next.name}`,
              onclick: () => race.challenge(next.id),
            })
          : null,
        text ? make('button', { class: 'button', text: 'Share link', onclick: share }) : null,
        text ? make('button', { class: 'button', text: 'Watch it', onclick: watch }) : null,
      ),
      text && race.app.server.has('board') ? nameField(race, text) : null,
      status,
    ),
  );
  find('#result .main').focus({ preventScroll: true });
  return status;
}

function lapTable(race, run, best) {
  const rows = run.laps.map((one, k) =>
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
  );
  return make('table', {}, make('tbody', {}, ...rows));
}

/** The corners that cost most against the ghost's same lap, and one sentence of advice. */
function losses(race, run, lap) {
  if (!race.ghost?.run.laps[lap - 1]) return null;
  const found = findLosses(race.app.track, run, race.ghost.run, lap - 1);
  if (!found.length) return null;
  const worst = found.filter((one) => one.lost > 0).slice(0, MAX_CORNERS);
  const most = Math.max(0.01, worst[0]?.lost ?? 0);
  return make(
    'div',
    { class: 'losses', id: 'losses' },
    make('p', { text: advise(found) }),
    ...worst.map((one) => {
      const bar = make('i');
      bar.style.width = `${Math.round((100 * one.lost) / most)}%`;
      return make(
        'div',
        { class: 'loss' },
        make('span', { text: one.label }),
        make('u', {}, bar),
        make('b', { class: 'num', text: deltaText(one.lost) }),
      );
    }),
  );
}

/** The name for the board: a lap is sent once there is one; another one is put on the laps sent before too. */
function nameField(race, text) {
  let isKnown = Boolean(ownName());
  let button = null;
  const name = make('input', {
    type: 'text',
    id: 'driver-name',
    maxlength: 32,
    value: ownName(),
    placeholder: 'Your name',
  });
  const send = async () => {
    const value = name.value.trim();
    if (!value) {
      name.focus();
      return;
    }
    if (isKnown) await race.rename(value);
    else if (!button.disabled) {
      button.disabled = true; // a lap is sent once
      remember('name', value);
      isKnown = await race.send(text);
      button.disabled = false;
      if (isKnown) button.remove();
    }
  };
  name.addEventListener('change', () => isKnown && send());
  name.addEventListener('keydown', (event) => event.key === 'Enter' && !isKnown && send());
  const post = { class: 'button', id: 'post-lap', text: 'Put it on the board', onclick: send };
  if (!isKnown) button = make('button', post);
  return make('div', { class: 'post' }, make('label', { class: 'field' }, 'Your name on the board', name), button);
}
