// Race: countdown, a person against a ghost, live delta, sectors, medal and result.

import { KINDS } from './colours.js';
import { defaultDriver } from './drivers.js';
import { drawBrakingLine } from './drawing.js';
import { find, lapText, make } from './format.js';
import { HumanPilot } from './input.js';
import { bestLap, encodeReplay, MAX_TICKS, toText } from './replay.js';
import { FRIEND, listGhosts, makeGhost, NO_GHOST, OWN_BEST } from './race_ghosts.js';
import { showOptions } from './race_options.js';
import { showResult } from './race_result.js';
import { keepBest, recall } from './storage.js';

const LIGHTS = 3;
const FIRST_LIGHT_S = 0.7;
const AGAIN_LIGHT_S = 0.35;
const STILL_MPS = 0.5;
const STILL_TICKS = 150;

export class RaceView {
  constructor(app) {
    this.app = app;
    this.phase = 'idle'; // idle, countdown, racing, paused, finished
    this.ghost = null;
    this.friend = null;
    this.delta = null;
    this.numLaps = recall('laps', 2);
    this.useLine = recall('braking-line', false);
    for (const [name, action] of [
      ['pause', () => this.pause()],
      ['restart', () => this.restart()],
      ['turn-camera', () => app.toggleCamera()],
    ])
      find(`[data-action=${name}]`).addEventListener('click', action);
  }

  get isRacing() {
    return this.phase === 'racing';
  }

  async show({ wanted = null, friend = null } = {}) {
    if (friend) this.friend = friend;
    if (this.friend && this.friend.replay.road !== this.app.track.road) this.friend = null;
    this.wanted = friend ? FRIEND : wanted || this.wanted || null;
    await this.prepare();
  }

  hide() {
    this.setPhase('idle');
    this.app.hud.showDelta(null, null);
    find('#overlay').replaceChildren();
    this.delta = null;
    this.app.stage.paused = false;
  }

  setPhase(phase) {
    this.phase = phase;
    document.body.dataset.phase = phase;
    document.body.classList.toggle('racing', phase === 'racing' || phase === 'countdown');
    document.body.classList.toggle('finished', phase === 'finished');
    this.app.controls.isActive = phase === 'racing' || phase === 'countdown';
  }

  async prepare() {
    const { app } = this;
    const ghosts = listGhosts(this);
    const chosen =
      ghosts.find((one) => one.id === this.wanted) ||
      ghosts.find((one) => one.id === defaultDriver(app.drivers)?.id) ||
      ghosts.at(-1);
    this.wanted = chosen.id;
    const track = app.track;
    try {
      this.ghost = await makeGhost(this, chosen.id);
    } catch (error) {
      app.say(error.message);
      this.ghost = null;
    }
    if (app.view !== 'race' || track !== app.track) return;
    showOptions(this, ghosts);
    this.line();
    this.setPhase('idle');
    app.announce(`Race on ${track.name}`);
    const touch = matchMedia('(pointer: coarse)').matches;
    find('#overlay').replaceChildren(
      make(
        'div',
        { class: 'panel grid-start' },
        make('h1', { text: this.ghost ? `Beat ${this.ghost.name}` : track.name }),
        make('p', {
          text: this.ghost?.run.best
            ? `Its best lap is ${lapText(this.ghost.run.best.time)}.`
            : `${Math.round(track.length_m)} m, ${track.character}`,
        }),
        make('button', {
          class: 'button main',
          'data-action': 'start',
          text: 'Start',
          onclick: () => this.countdown(FIRST_LIGHT_S),
        }),
        make('p', {
          text: touch
            ? 'Steer on the left, brake and gas on the right.'
            : 'Arrow keys or WASD, gamepad too. R restarts, Esc pauses.',
        }),
      ),
    );
    find('[data-action="start"]').focus({ preventScroll: true });
  }

  /** Cars on the line, engines running, nobody moves. */
  line() {
    const { app } = this;
    const { stage } = app;
    const pilot = new HumanPilot(app.controls, stage.tickSeconds);
    const human = { id: 'human', name: 'You', kind: 'human', colour: KINDS.human, makePilot: () => pilot };
    stage.setCars([human, ...(this.ghost ? [this.ghost] : [])]);
    stage.pace = app.pace;
    stage.paused = true;
    app.resetCamera();
    this.pilot = pilot;
    this.numSectors = 0;
    this.still = 0;
    this.delta = null;
    app.hud.clearSectors();
    app.hud.showDelta(0, this.ghost ? `against ${this.ghost.name}` : null);
    stage.onTick = () => this.tick();
    stage.onDraw = (context, camera, poses) => {
      if (this.useLine)
        drawBrakingLine(context, camera, app.track, stage.world.read.arc_m(0), poses[0].speed, stage.dpr);
    };
  }

  countdown(lightSeconds) {
    if (!this.app.stage.cars.length) return;
    this.line();
    this.setPhase('countdown');
    this.app.canvas.focus({ preventScroll: true });
    const lights = make(
      'div',
      { class: 'lights', role: 'status', 'aria-label': 'Countdown' },
      ...Array.from({ length: LIGHTS }, () => make('i')),
    );
    find('#overlay').replaceChildren(lights);
    let lit = 0;
    clearInterval(this.timer);
    this.timer = setInterval(
      () => {
        if (this.phase !== 'countdown') {
          clearInterval(this.timer);
          return;
        }
        if (lit < LIGHTS) {
          lights.children[lit].classList.add('on');
          lit += 1;
          this.app.sound.beep(440);
          return;
        }
        clearInterval(this.timer);
        lights.classList.add('go');
        this.app.sound.beep(880, 0.4);
        this.go();
        setTimeout(() => lights.isConnected && lights.remove(), 700);
      },
      (1000 * lightSeconds) / this.app.pace,
    );
  }

  go() {
    this.setPhase('racing');
    this.app.stage.paused = false;
    this.app.announce('Go');
  }

  restart() {
    if (this.phase === 'idle') return;
    find('#overlay').replaceChildren();
    this.countdown(AGAIN_LIGHT_S);
  }

  /** The window is not looked at any more. */
  rest() {
    if (this.phase === 'racing') this.pause();
    else if (this.phase === 'countdown') this.prepare();
  }

  /** Other drivers than before are known: offer them, where no race is under way. */
  driversChanged() {
    if (this.phase !== 'idle') return;
    const hadNone = this.wanted === NO_GHOST && !this.isChosen;
    if (hadNone) this.wanted = null;
    if (hadNone) this.prepare();
    else showOptions(this, listGhosts(this));
  }

  pause() {
    const { stage } = this.app;
    if (this.phase === 'racing') {
      this.setPhase('paused');
      stage.paused = true;
      this.app.announce('Paused');
      this.app.sound.silence();
      find('#overlay').replaceChildren(
        make(
          'div',
          { class: 'panel grid-start' },
          make('h1', { text: 'Paused' }),
          make(
            'div',
            { class: 'row' },
            make('button', { class: 'button main', text: 'Go on', onclick: () => this.pause() }),
            make('button', { class: 'button', text: 'Restart', onclick: () => this.restart() }),
            make('button', { class: 'button', text: 'Leave', onclick: () => this.prepare() }),
          ),
        ),
      );
      find('#overlay button').focus();
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
    if (this.still === STILL_TICKS) this.flash('Stuck? R restarts');
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

  async finish() {
    const { app } = this;
    const { stage, track, engine } = app;
    this.setPhase('finished');
    stage.paused = true;
    app.sound.silence();
    const { run } = stage.cars[0];
    const best = bestLap(run.laps);
    const lap = run.laps.indexOf(best) + 1;
    const inputs = Float32Array.from(this.pilot.inputs);
    const medal = best.clean
      ? Object.entries(track.medals_sec || {})
          .sort((a, b) => a[1] - b[1])
          .find(([, seconds]) => best.time <= seconds)?.[0]
      : null;
    const replay = { road: track.road, physics: engine.physics, seed: 0, lap, lapTime: best.time, actions: inputs };
    const text = toText(await encodeReplay(replay));
    const name = recall('name', 'You');
    const isBest = keepBest(track.road, engine.physics, {
      time: best.time,
      clean: best.clean,
      date: new Date().toISOString(),
      replay: text,
      driver: name,
    });
    showOptions(this, listGhosts(this));
    const verdict = this.verdict(best, isBest);
    app.announce(verdict);
    app.sound.beep(1175, 0.5);
    this.status = showResult(this, { run, best, medal, text, replay, verdict });
    if (app.server.has('board')) this.send(text);
  }

  verdict(best, isBest) {
    const rival = this.ghost?.run.best;
    if (rival && best.time < rival.time) {
      const words = {
        champion: 'the AI',
        generalist: 'the AI',
        model: 'the AI',
        casual: 'the casual driver',
        optimal: 'the optimal driver',
      };
      const what = words[this.ghost.kind] || (this.ghost.id === OWN_BEST ? 'your own best' : this.ghost.name);
      return `You beat ${what}${best.clean ? '' : ', off the road though'}!`;
    }
    if (!best.clean) return 'Done, but you left the road';
    return isBest ? 'Your best lap here' : 'Finished';
  }

  /** Put the lap on the server's board, which drives it again. */
  async send(text) {
    const track = this.app.track.id;
    try {
      const entry = await this.app.server.post('api/board', { track, driver: recall('name', 'You'), replay: text });
      this.status.textContent = `On the board with ${lapText(entry.lap_time_sec)}, driven again by the server.`;
    } catch (error) {
      this.status.textContent = `Not on the board: ${error.message}`;
    }
  }

  key(event) {
    if (event.code === 'KeyR') this.restart();
    else if (event.code === 'Escape') this.pause();
    else return;
    event.preventDefault();
  }
}
