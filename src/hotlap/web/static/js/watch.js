// Watch: the AI laps the moment the page is open; several drivers at once; replays with play, pause and steps.

import { driverColour, KINDS } from './colours.js';
import { dailyButton } from './daily.js';
import { defaultDriver, makeEntry } from './drivers.js';
import { find, lapText, make } from './format.js';
import { showPlayback } from './playback.js';
import { A_FRIEND, NOT_HERE } from './race_ghosts.js';
import { playRace } from './race_playback.js';
import { driveKeys, ReplayPilot, verifyReplay } from './replay.js';

const MAX_CARS = 12;

export class WatchView {
  constructor(app) {
    this.app = app;
    this.chosen = [];
    this.replay = null;
    this.notes = new Map();
  }

  /** One line about a track, shown below its drivers. */
  note(track, text) {
    this.notes.set(track.id, text);
    const line = find('#track-note');
    if (line && track === this.app.track) line.textContent = text;
  }

  /** Show the drivers of the track; `wanted` is a driver's id, `replay` one to play instead. */
  async show({ wanted = null, replay = null } = {}) {
    const { stage } = this.app;
    document.body.classList.toggle('replaying', Boolean(replay));
    this.replay = replay;
    this.times = new Map();
    if (replay) {
      await (replay.groups ? this.playRace(replay) : this.playReplay(replay));
      return;
    }
    find('#playback').hidden = true;
    Object.assign(stage, { showLabels: true, carSize: 1.25 });
    stage.pace = this.app.pace;
    const { drivers } = this.app;
    const first = drivers.find((one) => one.id === wanted) || defaultDriver(drivers);
    const kept = wanted ? [] : this.chosen.filter((id) => drivers.some((one) => one.id === id));
    this.chosen = kept.length ? kept : first ? [first.id] : [];
    if (wanted && !drivers.some((one) => one.id === wanted)) this.app.say(NOT_HERE);
    await this.start();
  }

  /** The track of the day is known. */
  dailyChanged() {
    if (!this.replay && this.app.stage.cars.length) this.list();
  }

  hide() {
    document.body.classList.remove('replaying');
    find('#playback').hidden = true;
    Object.assign(this.app.stage, { showLabels: true, carSize: 1.25 });
  }

  async start() {
    const { stage, track, drivers } = this.app;
    const entries = [];
    for (const id of this.chosen) {
      const driver = drivers.find((one) => one.id === id);
      if (!driver) continue;
      try {
        entries.push(await makeEntry(driver, track));
      } catch (error) {
        this.app.say(error.message);
        this.chosen = this.chosen.filter((one) => one !== id);
      }
    }
    if (this.app.view !== 'watch' || track !== this.app.track) return;
    stage.setCars(entries);
    stage.onTick = () => this.tick();
    this.list();
    this.app.announce(
      entries.length ? `${entries.map((one) => one.name).join(', ')} on ${track.name}` : `No driver for ${track.name}`,
    );
  }

  toggle(id, isOn) {
    this.chosen = isOn ? [...this.chosen, id].slice(-MAX_CARS) : this.chosen.filter((one) => one !== id);
    this.start();
  }

  tick() {
    const { stage } = this.app;
    for (const car of stage.cars) {
      const best = stage.best(car);
      const cell = this.times.get(car.id);
      if (best && cell && cell.best !== best.time) {
        cell.best = best.time;
        cell.textContent = lapText(best.time);
      }
    }
  }

  list() {
    const { drivers, stage, track } = this.app;
    const items = drivers.map((driver) => {
      const car = stage.cars.find((one) => one.id === driver.id);
      const time = make('time');
      this.times.set(driver.id, time);
      const box = make('input', {
        type: 'checkbox',
        onchange: (event) => this.toggle(driver.id, event.target.checked),
      });
      box.checked = Boolean(car);
      const chip = make('span', { class: 'chip' });
      chip.style.background = driverColour(driver);
      chip.classList.toggle('faint', !car);
      const isFocus = car && car.index === stage.focus;
      const follow =
        car && stage.cars.length > 1 && !isFocus
          ? make('button', {
              text: 'Follow',
              title: `The camera follows ${driver.name}`,
              'aria-label': `Follow ${driver.name}`,
              onclick: () => {
                stage.focus = car.index;
                this.list();
              },
            })
          : null;
      return make(
        'li',
        { class: isFocus ? 'focus' : null },
        make('label', {}, box, chip, make('span', { text: driver.name, title: driver.name })),
        time,
        follow,
      );
    });
    const body = items.length
      ? make('ul', { class: 'drivers' }, ...items)
      : make('p', { text: 'No driver has driven this track yet. Race it yourself, or train one in Learn.' });
    const panel = this.panel();
    panel.replaceChildren(
      ...[
        dailyButton(this.app),
        make('h2', { text: 'Drivers' }),
        body,
        make('p', { class: 'about', id: 'track-note', text: this.notes.get(track.id) || '' }),
        track.attribution ? make('p', { class: 'about', id: 'attribution', text: track.attribution }) : null,
      ].filter(Boolean),
    );
  }

  /** Where the drivers are listed. The button above stays when they change: a finger may be on it. */
  panel() {
    const { stage } = this.app;
    if (!this.hero?.isConnected) {
      const race = { class: 'button main', text: 'Race', id: 'race-link', onclick: () => this.app.raceNow() };
      this.hero = make('div', { class: 'hero' }, make('h1'), make('button', race));
      find('#side').replaceChildren(make('div', { class: 'panel' }, this.hero, make('div')));
    }
    this.hero.querySelector('h1').textContent = this.challenge(stage.cars[stage.focus]);
    return this.hero.nextElementSibling;
  }

  /** What this is, in one line. */
  challenge(car) {
    if (!car) return 'Nobody has a time here yet. Set the first one.';
    const isTaught = ['champion', 'generalist', 'model', 'rival'].includes(car.kind);
    return isTaught
      ? 'This driver taught itself. Can you beat it?'
      : `This is the ${car.name.toLowerCase()}. Can you beat it?`;
  }

  /** Play a replay after it was driven to its end and found to be true. */
  playReplay(given) {
    const { stage, engine, track } = this.app;
    let replay;
    let run;
    try {
      replay = driveKeys(engine, track, given);
      run = verifyReplay(engine, track, replay);
    } catch (error) {
      this.refuse(error);
      return;
    }
    const name = replay.driver || A_FRIEND;
    this.pilot = new ReplayPilot(replay);
    stage.setCars([{ id: 'replay', name, kind: 'replay', colour: KINDS.replay, makePilot: () => this.pilot }]);
    stage.pace = this.app.pace;
    const best = run.laps[replay.lap - 1];
    this.app.announce(`${name}: ${lapText(best.time)}`);
    const rows = run.laps.map((lap, k) =>
      make(
        'tr',
        { class: k === replay.lap - 1 ? 'mine' : null },
        make('td', { text: `Lap ${k + 1}` }),
        make('td', { class: 'number', text: lapText(lap.time) }),
        make('td', { text: lap.clean ? 'clean' : 'off the road' }),
      ),
    );
    find('#side').replaceChildren(
      make(
        'div',
        { class: 'panel stack' },
        make('h2', { text: name }),
        make('div', {
          class: 'big-lap',
          id: 'replay-time',
          'data-seconds': String(best.time),
          text: lapText(best.time),
        }),
        make('p', { text: 'Driven again from its inputs just now, to the same time. Can you beat it?' }),
        make('table', {}, make('tbody', {}, ...rows)),
        make(
          'div',
          { class: 'row' },
          make('button', { class: 'button main', text: 'Race it', onclick: () => this.app.raceAgainst(replay, name) }),
          make('button', { class: 'button', text: 'Close', onclick: () => this.app.go('watch', {}) }),
        ),
      ),
    );
    this.playPause = showPlayback(stage, replay.actions.length / 3);
  }

  /** Play a race against rivals, likewise. */
  async playRace(race) {
    try {
      this.playPause = await playRace(this.app, race);
    } catch (error) {
      if (this.replay === race) this.refuse(error);
    }
  }

  refuse(error) {
    this.app.say(error.message);
    this.show();
  }

  key(event) {
    if (this.replay && event.code === 'Space') {
      event.preventDefault();
      if (!event.repeat) this.playPause?.();
    }
  }
}
