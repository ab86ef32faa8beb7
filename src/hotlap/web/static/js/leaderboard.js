// Leaderboard: best laps of people and drivers on a track, each with its replay.

import { ownName } from './board.js';
import { driverColour, KINDS } from './colours.js';
import { loadDriver } from './drivers.js';
import { giveLaps } from './given_laps.js';
import { aboutTrack, find, lapText, make, percentText } from './format.js';
import { bestLap, decodeReplay, fromText, recordRun, ReplayPilot } from './replay.js';
import { PolicyPilot } from './engine.js';
import { fetchBytes } from './server.js';
import { bestOn } from './storage.js';

export class LeaderboardView {
  constructor(app) {
    this.app = app;
    this.isToday = true; // on the track of the day: today's laps only
  }

  /** The day whose laps are shown, or null for all. */
  get day() {
    const { daily, track } = this.app;
    return this.isToday && daily?.id === track.id ? daily.day : null;
  }

  dailyChanged() {
    if (this.day) this.show();
  }

  /** Today's laps or all, on the track of the day. */
  dayButtons(track) {
    if (this.app.daily?.id !== track.id) return null;
    const button = (isToday, text) =>
      make('button', {
        class: 'button',
        'aria-pressed': String(this.isToday === isToday),
        text,
        onclick: () => {
          this.isToday = isToday;
          this.show();
        },
      });
    const buttons = [button(true, 'Today'), button(false, 'All time')];
    return make('div', { class: 'row format days', role: 'group', 'aria-label': 'Which laps' }, ...buttons);
  }

  async show() {
    const { app } = this;
    const { track } = app;
    app.stage.paused = true;
    const loading = make('p', { class: 'hint', id: 'board-loading', role: 'status', text: 'Loading the laps…' });
    const note = make('p', {
      class: 'hint',
      text: app.server.connected
        ? ''
        : 'Without a server the board has your own best lap and the drivers that come with the page.',
    });
    find('#page').replaceChildren(
      make(
        'div',
        { class: 'page-inner' },
        make('h1', { text: this.app.daily?.id === track.id ? `${track.name}, track of the day` : track.name }),
        make('p', {
          text: `${aboutTrack(track)} Every lap is driven again from its inputs before it counts.`,
        }),
        this.dayButtons(track),
        make(
          'section',
          { class: 'card' },
          make(
            'div',
            { class: 'sideways' },
            make(
              'table',
              { id: 'board' },
              make(
                'thead',
                {},
                make(
                  'tr',
                  {},
                  make('th', { class: 'extra', text: '#' }),
                  make('th', { text: 'Driver' }),
                  make('th', { class: 'number', text: 'Lap' }),
                  make('th', { class: 'number extra', text: 'To optimum' }),
                  make('th', { class: 'extra', text: 'Date' }),
                  make('th', { text: '' }),
                ),
              ),
              make('tbody'),
            ),
          ),
          loading,
          note,
        ),
        this.nameField(),
        app.server.has('board')
          ? make('a', {
              class: 'button',
              href: 'api/board/export',
              download: 'hotlap-board.json',
              text: 'Export as JSON',
            })
          : null,
        giveLaps(),
      ),
    );
    app.announce(`Best laps on ${track.name}`);
    try {
      const count = await this.fill(track);
      loading.remove();
      if (!count) note.textContent = 'Nobody has a lap here yet.';
    } catch (error) {
      loading.remove();
      note.textContent = error.message;
    }
  }

  hide() {}

  /** The visitor's name: another one is put on the laps that were sent before too. */
  nameField() {
    const { app } = this;
    const said = make('span', { class: 'hint', id: 'renamed', role: 'status' });
    const rename = async (event) => {
      try {
        const name = event.target.value.trim();
        const count = await app.board.rename(name);
        const done = name ? `You are ${name} on the board now.` : '';
        said.textContent = count ? `On ${count === 1 ? 'your lap' : `your ${count} laps`} too.` : done;
        if (app.view === 'board') await this.fill(app.track);
      } catch (error) {
        said.textContent = error.message;
      }
    };
    const name = make('input', {
      type: 'text',
      id: 'own-name',
      maxlength: 32,
      value: ownName(),
      placeholder: 'Nobody yet',
      onchange: rename,
    });
    return make('label', { class: 'field own-name' }, 'Your name on the board', name, said);
  }

  /** Put the laps in the table. */
  async fill(track) {
    const { app } = this;
    const entries = await this.entries(track);
    if (app.view !== 'board' || app.track !== track) return entries.length;
    find('#board tbody').replaceChildren(...entries.map((entry, index) => this.row(entry, index, track)));
    return entries.length;
  }

  /** The server's entries, or what this browser knows; and always the drivers that come with the page. */
  async entries(track) {
    const { app } = this;
    const { day } = this;
    const query = `track=${encodeURIComponent(track.id)}${day ? `&day=${day}` : ''}`;
    const entries = app.server.connected ? await app.server.get(`api/board?${query}`) : [];
    const own = bestOn(track.road, app.engine.physics);
    const isInTime = !day || own?.date?.startsWith(day);
    if (own && isInTime && !entries.some((one) => one.kind === 'human' && Math.fround(one.lap_time_sec) === own.time)) {
      entries.push({
        driver: ownName() || own.driver || 'You',
        kind: 'human',
        lap_time_sec: own.time,
        clean: own.clean,
        date: own.date,
        text: own.replay,
        isOwn: true,
      });
    }
    for (const driver of app.drivers) {
      const known = entries.find((one) => one.driver_id === driver.id);
      if (known) {
        Object.assign(known, { driver: driver.name, colour: driverColour(driver) });
        continue;
      }
      const file = await loadDriver(driver).catch(() => null);
      if (!file) continue;
      const run = recordRun(
        app.engine,
        track,
        (world) => (file.policy ? new PolicyPilot(world, file.policy) : new ReplayPilot(file.replay)),
        2,
        12000,
      );
      const best = bestLap(run.laps);
      if (best)
        entries.push({
          driver: driver.name,
          kind: driver.kind,
          colour: driverColour(driver),
          lap_time_sec: best.time,
          clean: best.clean,
          date: null,
          watch: driver.id,
          run: driver.id,
        });
    }
    return entries.sort((a, b) => Number(b.clean ?? true) - Number(a.clean ?? true) || a.lap_time_sec - b.lap_time_sec);
  }

  row(entry, index, track) {
    const dot = make('span', { class: 'dot' });
    const colour =
      entry.colour || (entry.kind === 'human' ? KINDS.human : driverColour({ id: entry.driver, ...entry }));
    dot.style.background = colour;
    const optimum = track.optimal_lap_time_sec;
    return make(
      'tr',
      {
        class: this.app.board.isOwn(entry) ? 'mine' : null,
        'data-kind': entry.kind,
        'data-driver': entry.driver,
        'data-colour': colour,
      },
      make('td', { class: 'extra', text: String(index + 1) }),
      make(
        'td',
        {},
        dot,
        entry.driver,
        entry.clean === false ? make('small', { class: 'hint', text: ' off the road' }) : null,
      ),
      make('td', { class: 'number', text: lapText(entry.lap_time_sec) }),
      make('td', { class: 'number extra', text: optimum ? percentText(entry.lap_time_sec / optimum - 1) : '–' }),
      make('td', { class: 'extra', text: entry.date ? entry.date.slice(0, 10) : '–' }),
      make(
        'td',
        {},
        make(
          'div',
          { class: 'row' },
          make('button', { class: 'button', text: 'Watch', onclick: () => this.watch(entry) }),
          entry.text || entry.replay || entry.run
            ? make('button', { class: 'button', text: 'Race', onclick: () => this.race(entry) })
            : null,
        ),
      ),
    );
  }

  async replayOf(entry) {
    const bytes = entry.text ? fromText(entry.text) : new Uint8Array(await fetchBytes(entry.replay));
    return { ...(await decodeReplay(bytes)), driver: entry.driver };
  }

  async watch(entry) {
    try {
      if (entry.watch) this.app.go('watch', { driver: entry.watch });
      else this.app.playReplay(await this.replayOf(entry));
    } catch (error) {
      this.app.say(error.message);
    }
  }

  async race(entry) {
    try {
      if (entry.run) this.app.go('race', { driver: entry.run });
      else this.app.raceAgainst(await this.replayOf(entry), entry.driver);
    } catch (error) {
      this.app.say(error.message);
    }
  }
}
