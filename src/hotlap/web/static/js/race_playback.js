// A race against rivals, driven again from its replay: checked to its end first, then shown.

import { KINDS } from './colours.js';
import { find, make } from './format.js';
import { showPlayback } from './playback.js';
import { PersonPilot } from './race_replay.js';
import { STATUS } from './race_world.js';
import { listRivals, Rivals } from './rivals.js';
import { classify, Tower } from './rivals_panels.js';

/** The field of a race's replay; an error in one line where it cannot be driven here. */
async function loadField(app, race) {
  const { engine, track } = app;
  const version = engine.description.race;
  if (race.version !== version)
    throw new Error(`This race was driven with race version ${race.version}; the page has ${version}.`);
  if (race.road !== track.road) throw new Error('This race was driven on another road.');
  const known = listRivals(app);
  const rivals = new Rivals(app, { laps: race.laps, grid: race.slots });
  rivals.field = race.groups.flatMap(({ id, count }) => {
    const driver = known.find((one) => one.id === id);
    if (!driver) throw new Error(`A rival of this race is not here: ${id}.`);
    return Array.from({ length: count }, () => driver);
  });
  await rivals.loadFiles();
  for (const { id, digest } of race.groups)
    if (rivals.digestOf(id) !== digest) throw new Error(`A rival of this race is another version here: ${id}.`);
  return rivals;
}

/** Drive the race to its end on the stage, and compare; its number of ticks. */
async function check(app, race, rivals, line) {
  const { stage } = app;
  line();
  stage.paused = true;
  const { world } = stage;
  await rivals.complete(stage);
  if (stage.world !== world) return null;
  const isSame = race.times.every((time, car) => Object.is(Math.fround(time), world.entrant.race_time_s(car)));
  if (!isSame) throw new Error('This race does not end as it claims, so it is refused.');
  return stage.tick;
}

/** Play a race in the watch view; an error where it is not true. Null where another view was opened meanwhile. */
export async function playRace(app, race) {
  const { stage, engine, track } = app;
  const name = race.driver || 'A friend';
  const rivals = await loadField(app, race);
  const person = { id: 'replay', name, kind: 'replay', colour: KINDS.human };
  const line = () => {
    stage.carSize = 1.05;
    stage.showLabels = false;
    rivals.line(stage, { ...person, makePilot: () => new PersonPilot(race, engine) });
  };
  find('#side').replaceChildren(make('div', { class: 'panel' }, make('p', { text: 'Driving the race again…' })));
  const numTicks = await check(app, race, rivals, line);
  if (numTicks === null || app.view !== 'watch' || track !== app.track) return null;
  const { verdict, table } = classify(rivals, stage.cars, name);
  const order = make('div', { class: 'tower', id: 'replay-order', 'aria-label': 'Order of the cars' });
  showPanel(app, race, name, verdict, order, table);
  line();
  stage.pace = app.pace;
  const tower = new Tower(order);
  const follow = () => {
    for (const car of stage.cars) car.isGone = rivals.status(car.index) !== STATUS.racing;
    tower.show(rivals, stage.cars);
  };
  follow();
  app.announce(`${name}: ${verdict}`);
  return showPlayback(stage, numTicks, follow);
}

function showPanel(app, race, name, verdict, order, table) {
  find('#side').replaceChildren(
    make(
      'div',
      { class: 'panel stack' },
      make('h2', { text: name }),
      make('p', { class: 'lead', id: 'race-verdict', text: `${verdict}. Every car was driven again just now.` }),
      order,
      make('details', {}, make('summary', { text: 'Result' }), table),
      make(
        'div',
        { class: 'row' },
        make('button', { class: 'button main', text: 'Race them', onclick: () => app.raceRivals() }),
        race.id
          ? make('a', {
              class: 'button',
              href: `api/replays/${race.id}?form=race`,
              download: 'race.json',
              title: 'For hotlap report',
              text: 'Save',
            })
          : null,
        make('button', { class: 'button', text: 'Close', onclick: () => app.go('watch', {}) }),
      ),
    ),
  );
}
