// Race: countdown, a person against a ghost, live delta, sectors, medal and result.

import { ownName } from './board.js';
import { KINDS } from './colours.js';
import { drawBrakingLine } from './drawing.js';
import { dropDriver } from './drivers.js';
import { find, lapText, make } from './format.js';
import { keepDrive } from './given_laps.js';
import { HumanPilot } from './input.js';
import { bestLap, encodeReplay, MAX_TICKS, toText } from './replay.js';
import { FRIEND, ghostWords, listGhosts, makeGhost, NO_GHOST, NOT_HERE } from './race_ghosts.js';
import { nextRung, noteBeaten, noteLap } from './race_ladder.js';
import { showOptions } from './race_options.js';
import { showLights, showPaused, showStart, showWaiting } from './race_panels.js';
import { showResult } from './race_result.js';
import { respawn } from './respawn.js';
import { prepareRivals, tickRivals } from './rival_race.js';
import { Rivals } from './rivals.js';
import { showRivalOptions, Tower } from './rivals_panels.js';
import { keepBest, recall, remember } from './storage.js';
import { changeCamera } from './toolbar.js';

const FIRST_LIGHT_S = 0.7;
const AGAIN_S = 0.3; // on the line, before the clock runs again
const STILL_MPS = 0.5;
const STILL_TICKS = 150;
const WAIT_MS = 300;

export class RaceView {
  constructor(app) {
    this.app = app;
    this.phase = 'idle'; // idle, countdown, racing, paused, finished
    this.ghost = null;
    this.friend = null;
    this.delta = null;
    this.numLaps = recall('laps', 2);
    this.useLine = recall('braking-line', false);
    this.format = recall('format', 'ghost'); // or rivals, which meet
    this.rivals = new Rivals(app);
    this.tower = new Tower(find('#tower'));
    for (const [name, action] of [
      ['pause', () => this.pause()],
      ['restart', () => this.restart()],
      ['respawn', () => this.respawn()],
      ['turn-camera', () => changeCamera(app)],
    ])
      find(`[data-action=${name}]`).addEventListener('click', action);
  }

  get isRacing() {
    return this.phase === 'racing';
  }

  async show({ wanted = null, friend = null, isStarted = false, format = null } = {}) {
    if (format) this.format = format;
    if (friend) this.friend = friend;
    if (this.friend && this.friend.replay.road !== this.app.track.road) this.friend = null;
    if (friend || wanted) this.isChosen = true;
    else if (isStarted) this.isChosen = false; // whoever comes next on the ladder
    this.wanted = friend ? FRIEND : wanted || (this.isChosen ? this.wanted : null);
    if (friend || wanted || isStarted) this.format = 'ghost';
    if (wanted && !listGhosts(this).some((one) => one.id === wanted)) this.app.say(NOT_HERE);
    await this.prepare();
    if (isStarted && this.phase === 'idle' && this.app.view === 'race') this.countdown();
  }

  hide() {
    this.setPhase('idle');
    this.tower.hide();
    Object.assign(this.app.stage, { showLabels: true, carSize: 1.25, onTick: null, onDraw: null });
    this.app.hud.showDelta(null, null);
    find('#overlay').replaceChildren();
    this.delta = null;
    this.app.stage.paused = false;
  }

  setPhase(phase) {
    this.phase = phase;
    document.body.dataset.phase = phase;
    document.body.dataset.format = this.format;
    document.body.classList.toggle('racing', phase === 'racing' || phase === 'countdown');
    document.body.classList.toggle('finished', phase === 'finished');
    this.app.controls.isActive = phase === 'racing' || phase === 'countdown';
  }

  /** Race a ghost from now on, by its id. */
  challenge(id) {
    this.wanted = id;
    this.isChosen = true;
    return this.prepare();
  }

  /** Time trial, or a race against rivals. */
  setFormat(format) {
    this.format = format;
    remember('format', format);
    return this.prepare();
  }

  get hasRivals() {
    return this.format === 'rivals';
  }

  async prepare() {
    const { app } = this;
    this.tower.hide();
    if (this.hasRivals) {
      await prepareRivals(this);
      return;
    }
    const ghosts = listGhosts(this);
    const known = (id) => ghosts.find((one) => one.id === id);
    const chosen = known(this.wanted) || known(nextRung(app)?.id) || ghosts[0];
    this.wanted = chosen.id;
    const track = app.track;
    const waiting = setTimeout(() => showWaiting(this, ghosts, chosen), WAIT_MS);
    try {
      this.ghost = await makeGhost(this, chosen.id);
      noteLap(this);
    } catch (error) {
      app.say(error.message);
      this.ghost = null;
      if (track === app.track && dropDriver(app, chosen.id)) return this.prepare();
    } finally {
      clearTimeout(waiting);
    }
    if (app.view !== 'race' || track !== app.track) return;
    showOptions(this, ghosts);
    this.line();
    this.setPhase('idle');
    app.announce(`Race on ${track.name}`);
    showStart(this);
  }

  /** Cars on the line, engines running, nobody moves. */
  line() {
    const { app } = this;
    const { stage } = app;
    const pilot = new HumanPilot(app.controls, stage.tickSeconds);
    const human = { id: 'human', name: 'You', kind: 'human', colour: KINDS.human, makePilot: () => pilot };
    stage.showLabels = !this.hasRivals; // the tower has the names
    stage.carSize = this.hasRivals ? 1.05 : 1.25;
    if (this.hasRivals) this.rivals.line(stage, human);
    else stage.setCars([human, ...(this.ghost ? [this.ghost] : [])]);
    stage.pace = app.pace;
    stage.paused = true;
    app.resetCamera();
    Object.assign(this, { pilot, numSectors: 0, still: 0, delta: null, countsUntil: Infinity });
    app.hud.clearSectors();
    app.hud.showDelta(0, this.ghost ? `against ${this.ghost.name}` : null);
    stage.onTick = () => (this.hasRivals ? tickRivals(this) : this.tick());
    if (this.hasRivals) this.tower.show(this.rivals, stage.cars);
    stage.onDraw = (context, camera, poses) => {
      if (this.useLine)
        drawBrakingLine(context, camera, app.track, stage.world.read.arc_m(0), poses[0].speed, stage.dpr);
    };
  }

  /** The lights, and off. */
  countdown() {
    if (!this.app.stage.cars.length) return;
    this.line();
    this.setPhase('countdown');
    this.app.canvas.focus({ preventScroll: true });
    clearTimeout(this.timer);
    showLights(this, FIRST_LIGHT_S / this.app.pace);
  }

  go() {
    this.setPhase('racing');
    this.app.stage.paused = false;
    this.app.announce('Go');
  }

  /** Back to the line at once, without lights. */
  restart() {
    if (this.phase === 'idle') return;
    find('#overlay').replaceChildren();
    this.line();
    this.setPhase('countdown');
    this.app.canvas.focus({ preventScroll: true });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.phase === 'countdown' && this.go(), (1000 * AGAIN_S) / this.app.pace);
  }

  /** Back to the last checkpoint; the laps from here on do not count. */
  respawn() {
    if (this.phase !== 'racing' || this.hasRivals) return;
    const { stage } = this.app;
    const [car] = stage.cars;
    respawn(stage.world, 0);
    this.app.controls.reset();
    this.countsUntil = Math.min(this.countsUntil, car.run.tick);
    car.pose = stage.pose(car);
    car.before = car.pose;
    this.still = 0;
    this.flash('Back on the road. This race no longer counts');
    this.app.canvas.focus({ preventScroll: true });
  }

  /** The window is not looked at any more. */
  rest() {
    if (this.phase === 'racing') this.pause();
    else if (this.phase === 'countdown') this.prepare();
  }

  /** Other drivers than before are known: offer them, where no race is under way. */
  driversChanged() {
    if (this.phase !== 'idle') return;
    if (this.hasRivals) showRivalOptions(this);
    else if (this.wanted === NO_GHOST && !this.isChosen) {
      this.wanted = null;
      this.prepare();
    } else showOptions(this, listGhosts(this));
  }

  pause() {
    const { stage } = this.app;
    if (this.phase === 'racing') {
      this.setPhase('paused');
      stage.paused = true;
      this.app.announce('Paused');
      this.app.sound.silence();
      showPaused(this);
    } else if (this.phase === 'paused') {
      find('#overlay').replaceChildren();
      this.app.canvas.focus({ preventScroll: true });
      this.go();
    }
  }

  tick() {
    const { stage, hud } = this.app;
    const [car] = stage.cars;
    const { run } = car;
    if (this.ghost) {
      const there = this.ghost.run.secondsAt(run.progress);
      this.delta = there === null ? this.delta : run.tick * stage.tickSeconds - there;
    }
    if (run.sectors.length > this.numSectors) this.sector(run.sectors[this.numSectors]);
    if (run.laps.length >= this.numLaps) this.finish();
    else if (run.laps.length && run.laps.at(-1).tick === run.tick) this.flash(lapText(run.laps.at(-1).time));
    else if (run.tick >= MAX_TICKS) this.prepare();
    this.still = car.pose.speed < STILL_MPS && run.tick > STILL_TICKS ? this.still + 1 : 0;
    if (this.still === STILL_TICKS) this.flash(`Stuck? ${isTouch() ? '⚑' : 'Backspace'} puts you back on the road`);
    hud.showDelta(this.delta ?? 0, this.ghost ? `against ${this.ghost.name}` : null);
  }

  sector(sector) {
    this.numSectors += 1;
    const there = this.ghost?.run.sectors[this.numSectors - 1];
    if (sector.index === 0) this.app.hud.clearSectors();
    this.app.hud.showSector(sector.index, sector.seconds, there ? sector.seconds - there.seconds : null);
    this.app.sound.beep(there && sector.seconds <= there.seconds ? 990 : 660, 0.08);
  }

  flash(text) {
    const element = make('div', { class: 'flash', text });
    find('#overlay').append(element);
    setTimeout(() => element.remove(), 2400);
  }

  finish() {
    const { stage, sound } = this.app;
    this.setPhase('finished');
    stage.paused = true;
    sound.silence();
    sound.beep(1175, 0.5);
    return this.conclude(stage.cars[0].run, Float32Array.from(this.pilot.inputs), this.pilot.allKeys);
  }

  /** What came of a drive: kept if it is the best, shown, and sent to the board by whoever gave a name. */
  async conclude(run, inputs, keys = null) {
    const { app } = this;
    const { track, engine } = app;
    const best = bestLap(run.laps);
    const counts = best.tick <= this.countsUntil;
    const medal = counts && best.clean ? medalOf(track, best.time) : null;
    const lap = run.laps.indexOf(best) + 1;
    const replay = { road: track.road, physics: engine.physics, seed: 0, lap, lapTime: best.time, actions: inputs };
    const text = counts ? toText(await encodeReplay(replay)) : null;
    const date = new Date().toISOString();
    const kept = { time: best.time, clean: best.clean, date, replay: text, driver: ownName() };
    const isBest = counts && keepBest(track.road, engine.physics, kept);
    if (counts) {
      const { time: lap_time_sec, clean } = best;
      keepDrive({ track: track.id, physics: engine.physics, lap, lap_time_sec, clean, date, replay: text });
    }
    const rival = this.ghost?.run.best;
    if (counts && best.clean && rival && best.time < rival.time) noteBeaten(app, this.ghost.id);
    if (medal) noteBeaten(app, `medal:${medal}`);
    showOptions(this, listGhosts(this));
    const verdict = this.verdict(best, isBest, counts);
    app.announce(verdict);
    const share = () => app.links.shareLap(replay, keys, best.tick);
    this.status = showResult(this, { run, best, lap, medal, text, replay, share, verdict, next: nextRung(app) });
    if (text && app.server.has('board') && ownName()) await this.send(text);
  }

  verdict(best, isBest, counts) {
    if (!counts) return 'Finished, with help';
    const rival = this.ghost?.run.best;
    if (rival && best.time < rival.time) {
      const what = ghostWords(this.ghost);
      return `You beat ${what}${best.clean ? '' : ', off the road though'}!`;
    }
    if (!best.clean) return 'Done, but you left the road';
    return isBest ? 'Your best lap here' : 'Finished';
  }

  /** Put the lap on the server's board, which drives it again; true if it is there. */
  async send(text) {
    try {
      const entry = await this.app.board.send(this.app.track.id, ownName(), text);
      this.status.textContent = `On the board as ${entry.driver} with ${lapText(entry.lap_time_sec)}.`;
      return true;
    } catch (error) {
      this.status.textContent = `Not on the board: ${error.message}`;
      return false;
    }
  }

  /** Another name, on the laps of before too. */
  async rename(name) {
    try {
      const count = await this.app.board.rename(name);
      this.status.textContent = `You are ${name} on the board now${count ? '' : ', from the next lap on'}.`;
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  key(event) {
    const action = { KeyR: 'restart', Escape: 'pause', Backspace: 'respawn' }[event.code];
    if (!action) return;
    if (!event.repeat) this[action]();
    event.preventDefault();
  }
}

const isTouch = () => matchMedia('(pointer: coarse)').matches;

/** The best medal that a lap earns, or null. */
function medalOf(track, seconds) {
  const medals = Object.entries(track.medals_sec || {}).sort((a, b) => a[1] - b[1]);
  return medals.find(([, limit]) => seconds <= limit)?.[0] ?? null;
}
