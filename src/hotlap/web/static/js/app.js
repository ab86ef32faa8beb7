// The page: views by the address, the track, the toolbar, keys, and what tests and tinkerers can ask.

import { Board } from './board.js';
import { dailyTrack, findDaily } from './daily.js';
import { LeaderboardView } from './leaderboard.js';
import { firstMode, MODES } from './camera.js';
import { loadEngine } from './engine.js';
import { DrawView } from './editor.js';
import { find, lapText, make } from './format.js';
import { Hud } from './hud.js';
import { Controls } from './input.js';
import { LearnView } from './learn.js';
import { RaceView } from './race.js';
import { A_FRIEND } from './race_ghosts.js';
import { DEFAULT_TRACK, Links, pathTo } from './links.js';
import { encodeReplay, toText } from './replay.js';
import { Server } from './server.js';
import { Sound } from './sound.js';
import { Stage } from './stage.js';
import { pageState } from './page_state.js';
import { recall, remember } from './storage.js';
import { drawMap } from './minimap.js';
import { bindButtons, panelInsets, pressKey, showTools } from './toolbar.js';
import { TrackFiles } from './track_file.js';
import { TrackPicker } from './track_picker.js';
import { loadTrack } from './tracks.js';
import { WatchView } from './watch.js';

const VIEWS = ['watch', 'race', 'learn', 'draw', 'board'];

class App {
  constructor(engine, server) {
    Object.assign(this, {
      engine,
      server,
      view: null,
      track: null,
      drivers: [],
      trackList: [],
      daily: null,
      message: '',
      pace: 1,
      further: new Map(),
    });
    this.canvas = find('#canvas');
    this.board = new Board(server);
    this.links = new Links(this);
    this.hud = new Hud(find('#hud'));
    this.stage = new Stage(engine, this.canvas, find('#minimap'));
    this.controls = new Controls(engine.description.car);
    this.sound = new Sound();
    this.views = {
      watch: new WatchView(this),
      race: new RaceView(this),
      learn: new LearnView(this),
      draw: new DrawView(this),
      board: new LeaderboardView(this),
    };
    this.picker = new TrackPicker(this);
    this.files = new TrackFiles(this);
    this.bind();
    const update = () => {
      requestAnimationFrame(update);
      this.frame();
    };
    requestAnimationFrame(update);
  }

  bind() {
    window.addEventListener('popstate', () => this.route()); // a changed hash too
    window.addEventListener('keydown', (event) => this.key(event));
    for (const action of ['left', 'right', 'gas', 'brake']) this.controls.bindButton(find(`#touch-${action}`), action);
    this.canvas.addEventListener(
      'wheel',
      (event) => {
        if (this.view === 'draw') return;
        event.preventDefault();
        this.stage.camera.zoom(event.deltaY < 0 ? 1 : -1);
      },
      { passive: false },
    );
    bindButtons(this);
    this.server.addEventListener('change', () => this.connection());
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.rest();
    });
    window.addEventListener('blur', () => this.rest());
    const panels = new ResizeObserver(() => this.setInsets());
    for (const selector of ['#side', '#view-tools', '.map-box', '.dash', '#canvas']) panels.observe(find(selector));
    this.tools();
  }

  tools() {
    showTools(this);
  }

  /** Nobody looks: no race goes on, nothing is heard. */
  rest() {
    this.sound.silence();
    if (this.view === 'race') this.views.race.rest();
  }

  /** What the panels of a view cover of the picture, so that the whole track fits beside them. */
  setInsets() {
    if (this.view !== 'draw') this.stage.camera.inset = panelInsets(this.stage);
  }

  /** The camera that a person chose, or the first one. */
  resetCamera() {
    this.stage.camera.setMode(recall('camera', null) || firstMode());
    this.setInsets();
    this.tools();
  }

  toggleCamera() {
    const { camera } = this.stage;
    const mode = MODES[(MODES.indexOf(camera.mode) + 1) % MODES.length];
    camera.setMode(mode);
    if (this.view !== 'learn') remember('camera', mode);
    this.setInsets();
    this.tools();
  }

  key(event) {
    if (event.target.closest?.('input[type="text"], input[type="search"], input[type="number"], select, dialog'))
      return;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (this.view === 'draw') this.views.draw.key(event);
      return;
    }
    if (!pressKey(this, event)) this.views[this.view]?.key?.(event);
  }

  /** The view and its parameters in the address: `?track=ID&driver=ID#view?key=value`. */
  address() {
    const query = new URLSearchParams(location.search);
    const [name, rest = ''] = location.hash.slice(1).split('?');
    return {
      view: VIEWS.includes(name) ? name : 'watch',
      track: query.get('track'),
      driver: query.get('driver'),
      more: new URLSearchParams(rest),
    };
  }

  /** Change the address, and with it the view. */
  go(view, { track = this.track.id, driver = null, more = '' } = {}) {
    history.pushState(null, '', `${pathTo(track, driver)}#${view}${more ? `?${more}` : ''}`);
    return this.route();
  }

  chooseTrack(id) {
    const view = this.view === 'draw' ? 'watch' : this.view;
    return this.go(view, { track: id });
  }

  raceAgainst(replay, name) {
    this.pending = { friend: { replay, name: name || A_FRIEND } };
    this.go('race', {});
  }

  /** Race at once, against whoever comes next. */
  raceNow() {
    this.pending = { isStarted: true };
    return this.go('race', {});
  }

  playReplay(replay) {
    this.pending = { replay };
    this.go('watch', {});
  }

  /** Line up for a race against rivals. */
  raceRivals() {
    this.pending = { format: 'rivals' };
    this.go('race', {});
  }

  /** Copy a link and say so; where the browser does not allow it, show the link. */
  async copyLink(link, said) {
    this.shared = link;
    try {
      await navigator.clipboard.writeText(link);
      this.say(said);
    } catch {
      window.prompt('Copy this link', link);
    }
  }

  /** Show what the address asks for. */
  async route() {
    const wanted = this.links.keepRoad(this.address());
    const pending = this.pending || {};
    this.pending = null;
    const number = (this.routes = (this.routes || 0) + 1);
    const before = this.view;
    let track = this.track;
    if (!track || (wanted.track || DEFAULT_TRACK) !== track.id) {
      try {
        track = await loadTrack(wanted.track || DEFAULT_TRACK, this.engine.description, this.server.isStatic);
      } catch (error) {
        this.say(error.message);
        track = this.track || (await loadTrack(DEFAULT_TRACK, this.engine.description));
        if (error.isUnknown && number === this.routes)
          history.replaceState(null, '', `${pathTo(track.id, wanted.driver)}${location.hash}`);
      }
    }
    if (number !== this.routes) return;
    if (before) this.views[before].hide();
    this.view = wanted.view;
    document.body.dataset.view = wanted.view;
    document.title = `${wanted.view[0].toUpperCase()}${wanted.view.slice(1)} · ${track.name} · hotlap`;
    for (const link of document.querySelectorAll('nav a')) {
      if (link.dataset.view === wanted.view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    find('#side').replaceChildren();
    find('#overlay').replaceChildren();
    if (track !== this.track) this.setTrack(track);
    await this.arriving;
    if (number !== this.routes) return;
    this.resetCamera();
    let replay = pending.replay || null;
    try {
      replay = (await this.links.open(wanted.more)) || replay;
    } catch (error) {
      this.say(error.message);
    }
    if (number !== this.routes) return;
    await this.views[wanted.view].show({ wanted: wanted.driver, more: wanted.more, ...pending, replay });
  }

  setTrack(track) {
    this.track = track;
    this.stage.setTrack(track);
    find('#track-name').textContent = track.name;
    find('#track-about').textContent = `${Math.round(track.length_m)} m · ${track.character}`;
    drawMap(find('#track-thumb'), track, { road: getComputedStyle(document.body).color, width: 2.2, dpr: 1 });
    this.arriving = this.refreshDrivers(); // whoever opens a view waits for it, this address or the next
  }

  async refreshDrivers() {
    const { track } = this;
    const found = await this.server.drivers(track.id).catch(() => this.drivers);
    if (track !== this.track) return;
    this.drivers = [...(this.further.get(track.id) || []), ...found];
    this.driversChanged();
  }

  /** The list of drivers is another: the open view offers what it has now. */
  driversChanged() {
    if (this.view) this.views[this.view].driversChanged?.();
  }

  /** A driver that no list has: an AI as it was at one moment of its training. */
  addDriver(driver, track = this.track.id) {
    const others = (this.further.get(track) || []).filter((one) => one.id !== driver.id);
    this.further.set(track, [driver, ...others]);
    if (track === this.track.id) this.drivers = [driver, ...this.drivers.filter((one) => one.id !== driver.id)];
  }

  frame() {
    const { stage } = this;
    stage.isShown = this.view !== 'board' && !(this.view === 'draw' && !this.views.draw.hasRoad);
    const car = stage.cars[stage.focus];
    this.hud.dash.hidden = !car;
    if (!car || !stage.world) return;
    const { read } = stage.world;
    this.hud.show(car.pose, {
      number: read.lap(car.index),
      clock: stage.world.lapClock(car.index),
      last: car.laps.at(-1)?.time ?? null,
      best: stage.best(car)?.time ?? null,
      optimum: stage.track.optimal_lap_time_sec,
      isClean: !read.lap_spoiled(car.index),
    });
    if (!stage.paused && (this.view === 'race' || this.view === 'watch'))
      this.sound.update(car.pose.speed, car.pose.throttle);
    else this.sound.silence();
  }

  connection() {
    find('.offline')?.remove();
    if (!this.server.connected && this.server.wasConnected) {
      find('main').prepend(
        make('div', {
          class: 'offline',
          role: 'alert',
          text: 'The server does not answer. Driving goes on; the page connects again by itself.',
        }),
      );
      this.announce('The server does not answer');
    } else if (this.server.wasConnected && this.view) this.refreshDrivers();
  }

  announce(text) {
    this.message = text;
  }

  say(text, milliseconds = 5000) {
    this.message = text;
    const toast = find('#toast');
    toast.textContent = text;
    toast.classList.add('shown');
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => toast.classList.remove('shown'), milliseconds);
  }
}

async function open() {
  const server = new Server();
  const connecting = server.connect();
  const engine = await loadEngine();
  const app = new App(engine, server);
  window.hotlap = {
    state: () => pageState(app),
    /** Simulated seconds per second. */
    setPace: (pace) => {
      app.pace = pace;
      app.stage.pace = pace;
    },
    lapText,
    encodeReplay,
    toText,
    app,
  };
  await connecting;
  await app.route();
  app.trackList = await server.allTracks().catch(() => []);
  app.daily = findDaily(app.trackList, server.daily || dailyTrack());
  app.views[app.view].dailyChanged?.();
}

open().catch((error) => {
  document.body.append(
    make('p', { class: 'noscript', role: 'alert', text: `The page could not start: ${error.message}` }),
  );
  throw error;
});
