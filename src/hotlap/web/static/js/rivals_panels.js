// The panels of a race against rivals: who and how many, the order while racing, the classification.

import { ownName } from './board.js';
import { deltaText, find, lapText, make, setText } from './format.js';
import { STATUS } from './race_world.js';
import { bestLap } from './replay.js';
import { listRivals, MAX_RIVALS } from './rivals.js';
import { remember } from './storage.js';

/** Time trial or race: two buttons. */
export function formatButtons(race) {
  const button = (format, text) =>
    make('button', {
      class: 'button',
      'data-format': format,
      'aria-pressed': String(race.format === format),
      text,
      onclick: () => race.setFormat(format),
    });
  return make(
    'div',
    { class: 'row format', role: 'group', 'aria-label': 'Kind of race' },
    button('ghost', 'Time trial'),
    button('rivals', 'Race rivals'),
  );
}

function choice(id, label, value, options, choose) {
  const select = make(
    'select',
    { id, onchange: (event) => choose(event.target.value) },
    ...options.map(([key, text]) => make('option', { value: key, text })),
  );
  select.value = value;
  return make('label', { class: 'field' }, label, select);
}

/** Who is on the grid, for how many laps, and from where one starts. */
export function showRivalOptions(race) {
  const { rivals } = race;
  const set = (name, key, value) => {
    rivals[name] = value;
    remember(key, value);
    race.prepare();
  };
  const counts = Array.from({ length: MAX_RIVALS }, (_, k) => [k + 1, k ? `${k + 1} rivals` : '1 rival']);
  const kinds = listRivals(race.app).map((one) => [one.id, one.name]);
  const places = [
    ['front', 'from the front'],
    ['middle', 'from the middle'],
    ['back', 'from the back'],
  ];
  find('#side').replaceChildren(
    make(
      'div',
      { class: 'panel stack' },
      formatButtons(race),
      make('p', { text: 'All cars are on the road at once, and they touch.' }),
      choice('rival-kind', 'Against', rivals.kind, kinds, (value) => set('kind', 'rival-kind', value)),
      choice('rival-count', 'How many', rivals.numRivals, counts, (value) => set('numRivals', 'rivals', Number(value))),
      choice(
        'rival-laps',
        'Laps',
        rivals.laps,
        [1, 2, 3, 5, 10].map((count) => [count, String(count)]),
        (value) => set('laps', 'rival-laps', Number(value)),
      ),
      choice('rival-place', 'Start', rivals.place, places, (value) => set('place', 'rival-place', value)),
    ),
  );
}

/** The order of the cars while they race. */
export class Tower {
  constructor(element) {
    this.element = element;
    this.rows = [];
  }

  hide() {
    this.element.hidden = true;
    this.rows = [];
  }

  show(rivals, cars) {
    const order = rivals.order(cars);
    if (this.rows.length !== order.length) this.build(order.length);
    this.element.hidden = false;
    setText(this.head, `${rivals.position(0)} of ${cars.length}`);
    setText(this.laps, `Lap ${rivals.lap(0)} of ${rivals.laps}`);
    order.forEach(({ car, position, gap, isOut }, k) => {
      const row = this.rows[k];
      row.line.classList.toggle('mine', car.index === 0);
      setText(row.place, String(position));
      row.dot.style.background = car.colour;
      setText(row.name, car.name);
      setText(row.gap, isOut ? 'out' : gap === null ? '' : deltaText(gap, 1));
    });
  }

  build(count) {
    this.head = make('b');
    this.laps = make('span');
    this.rows = Array.from({ length: count }, () => {
      const row = { place: make('i'), dot: make('span', { class: 'dot' }), name: make('span'), gap: make('time') };
      row.line = make('li', {}, row.place, row.dot, row.name, row.gap);
      return row;
    });
    this.element.replaceChildren(
      make('p', {}, this.head, this.laps),
      make('ol', {}, ...this.rows.map((row) => row.line)),
    );
  }
}

/** What came of a race, car by car: a sentence about car 0, who is `name` or the visitor, and a table. */
export function classify(rivals, cars, name = null) {
  const { entrant } = rivals.world;
  const order = rivals.order(cars);
  const winner = entrant.race_time_s(order[0].car.index);
  const rows = order.map(({ car, position }) => {
    const status = rivals.status(car.index);
    const seconds = entrant.race_time_s(car.index);
    const result =
      status === STATUS.finished
        ? position === 1
          ? lapText(seconds)
          : `${deltaText(seconds - winner, 3)} s`
        : status === STATUS.retired
          ? 'out'
          : `${Math.max(0, entrant.laps_done(car.index))} of ${rivals.laps} laps`;
    const { all, faults } = rivals.contacts[car.index];
    const dot = make('span', { class: 'dot' });
    dot.style.background = car.colour;
    return make(
      'tr',
      { class: car.index === 0 ? 'mine' : null, 'data-car': car.id },
      make('td', { text: String(position) }),
      make('td', {}, dot, car.name),
      make('td', { class: 'number', text: result }),
      make('td', { class: 'number extra', text: lapText(bestLap(car.laps)?.time ?? NaN) }),
      make('td', { class: 'number contacts', text: all ? `${all} (${faults})` : '0' }),
    );
  });
  const heads = ['', 'Driver', 'Time', 'Best lap', 'Contacts (fault)'];
  const table = make(
    'table',
    { id: 'classification' },
    make('thead', {}, make('tr', {}, ...heads.map((text, k) => make('th', { class: headClass(k), text })))),
    make('tbody', {}, ...rows),
  );
  const own = order.find((one) => one.car.index === 0);
  return { verdict: verdictOf(own, rivals, cars.length, name), table };
}

/** The panel at the end of a race: the classification, and `share` and `watch` where it can be driven again. */
export function showClassification(race, cars, replay) {
  const { verdict, table } = classify(race.rivals, cars);
  const button = (text, onclick) => make('button', { class: 'button', text, onclick });
  find('#overlay').replaceChildren(
    make(
      'div',
      { class: 'panel result', id: 'result' },
      make('h1', { text: verdict }),
      table,
      make(
        'div',
        { class: 'row' },
        make('button', { class: 'button main', onclick: () => race.restart() }, 'Again ', make('kbd', { text: 'R' })),
        replay ? button('Share link', () => race.app.links.shareRace(replay)) : null,
        replay ? button('Watch it', () => race.app.playReplay({ ...replay, driver: ownName() || 'You' })) : null,
        button('Change', () => race.prepare()),
      ),
    ),
  );
  find('#result .main').focus({ preventScroll: true });
  return verdict;
}

const headClass = (column) => (column > 1 ? `number${[' ', ' extra', ' contacts'][column - 2]}` : null);

function verdictOf(own, rivals, count, name) {
  const isOut = rivals.status(0) === STATUS.retired;
  if (name) return isOut ? 'Out of the race' : `Finished ${own.position} of ${count}`;
  if (isOut) return 'You are out: the car stood for ten seconds';
  if (own.position === 1) return 'You won!';
  return `You finished ${own.position} of ${count}`;
}
