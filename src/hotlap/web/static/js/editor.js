// Draw: a closed line by mouse or finger, pulled into shape, checked by the server, driven at once, saved and shared.

import { COLOURS, KINDS } from './colours.js';
import { controlPoints, exampleLine, lineFromText, lineToText, MIN_POINTS, smooth } from './drawn_line.js';
import { makeEntry } from './drivers.js';
import { showPanel } from './editor_panel.js';
import { make } from './format.js';
import { solveOptimum } from './optimum.js';
import { forgetTrack, parseTrack } from './tracks.js';

const SPAN_M = 420;
const GRAB_PX = 16;
const CHECK_DELAY_MS = 120;

export class DrawView {
  constructor(app) {
    this.app = app;
    Object.assign(this, {
      points: [],
      width: 12,
      fault: null,
      hasRoad: false,
      stroke: null,
      held: -1,
      name: 'my-track',
    });
    const { canvas } = app;
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', () => this.up());
    canvas.addEventListener('pointercancel', () => this.up());
    canvas.addEventListener('dblclick', (event) => this.remove(event));
  }

  get isOpen() {
    return this.isShown && this.app.view === 'draw';
  }

  async show({ more = null } = {}) {
    const { app } = this;
    this.isShown = true;
    this.before = app.track;
    app.stage.setCars([]);
    app.setInsets();
    app.stage.camera.fix(SPAN_M);
    this.hasRoad = false;
    app.stage.isShown = false; // from now on, not from the next frame: it would draw over the grid
    this.panel();
    app.announce(app.server.connected ? 'Draw a closed line' : 'Drawing needs a server');
    if (more?.get('line')) {
      try {
        this.load(more.get('line'));
      } catch (error) {
        app.say(error.message);
      }
    }
    if (this.points.length) this.changed();
    this.paint();
  }

  hide() {
    this.isShown = false;
    clearTimeout(this.timer);
    const { stage } = this.app;
    stage.camera.isPlaced = false;
    stage.camera.setMode('follow');
    if (this.before) stage.setTrack(this.before);
  }

  get isReady() {
    return this.hasRoad && !this.fault;
  }

  at(event) {
    const { stage } = this.app;
    const box = stage.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * stage.dpr, (event.clientY - box.top) * stage.dpr];
  }

  nearest(sx, sy) {
    const { camera, dpr } = this.app.stage;
    let [best, index] = [GRAB_PX * dpr, -1];
    this.points.forEach(([x, y], k) => {
      const [px, py] = camera.toScreen(x, y);
      const apart = Math.hypot(px - sx, py - sy);
      if (apart < best) [best, index] = [apart, k];
    });
    return index;
  }

  down(event) {
    if (!this.isOpen || event.button > 0 || !this.app.server.connected) return;
    this.app.canvas.setPointerCapture(event.pointerId);
    const [sx, sy] = this.at(event);
    this.held = this.nearest(sx, sy);
    if (this.held < 0) {
      this.points = [];
      this.fault = null;
      this.hasRoad = false;
      this.stroke = [this.app.stage.camera.toWorld(sx, sy)];
    }
    this.paint();
  }

  move(event) {
    if (!this.isOpen || (this.held < 0 && !this.stroke)) return;
    const point = this.app.stage.camera.toWorld(...this.at(event));
    if (this.held >= 0) {
      this.points[this.held] = point;
      this.changed();
    } else {
      const last = this.stroke.at(-1);
      if (Math.hypot(point[0] - last[0], point[1] - last[1]) > 3) this.stroke.push(point);
    }
    this.paint();
  }

  up() {
    if (!this.isOpen) return;
    if (this.stroke) {
      this.points = controlPoints(this.stroke);
      this.stroke = null;
      if (this.points.length) this.changed();
      else this.app.say('That line is too short for a track. Draw a loop.');
    }
    this.held = -1;
    this.paint();
  }

  remove(event) {
    if (!this.isOpen || this.points.length <= MIN_POINTS) return;
    const index = this.nearest(...this.at(event));
    if (index >= 0) {
      this.points.splice(index, 1);
      this.changed();
      this.paint();
    }
  }

  drawing() {
    return { points: this.points.map(([x, y]) => [Number(x.toFixed(2)), Number(y.toFixed(2))]), width_m: this.width };
  }

  changed() {
    this.saved = null;
    this.panel();
    this.checkSoon();
  }

  /** Check the drawing when its points rest for a moment. */
  checkSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), CHECK_DELAY_MS);
  }

  async check() {
    const { app } = this;
    if (!this.isOpen || !this.points.length) return;
    const number = (this.checks = (this.checks || 0) + 1);
    try {
      const answer = await app.server.post('api/drawings/check', this.drawing());
      if (number !== this.checks || !this.isOpen) return;
      this.fault = answer.ok ? null : answer.fault;
      this.hasRoad = answer.ok;
      if (answer.ok) {
        const bytes = Uint8Array.from(atob(answer.track), (c) => c.charCodeAt(0));
        this.road = parseTrack(bytes.buffer, app.engine.description);
        await this.drive();
        app.announce(`A road of ${Math.round(answer.length_m)} m`);
      } else app.announce(answer.fault.text);
    } catch (error) {
      this.fault = { point: -1, text: error.message };
      this.hasRoad = false;
      app.announce(error.message);
    }
    this.panel();
    this.paint();
  }

  /** The road with the generalist on it, where there is one. */
  async drive() {
    const { app } = this;
    const { stage } = app;
    stage.setTrack(this.road);
    const generalist = app.drivers.find((one) => one.kind === 'generalist');
    const entries = generalist ? [await makeEntry(generalist, this.road)] : [];
    stage.setCars(entries);
    stage.camera.fix(SPAN_M);
    stage.onDraw = (context, camera) => this.handles(context, camera);
  }

  panel() {
    showPanel(this);
  }

  /** Save the drawing as a track; then go to a view with it, if one is named. */
  async save(view = null) {
    const { app } = this;
    const id = this.name.trim().toLowerCase();
    try {
      if (this.saved !== id) {
        await app.server.post('api/tracks', { id, ...this.drawing(), replace: true });
        forgetTrack(id);
        this.saved = id;
      }
      if (view) await app.go(view, { track: id });
      return id;
    } catch (error) {
      app.say(error.message);
      return null;
    }
  }

  async download() {
    const id = await this.save();
    if (id) make('a', { href: `api/tracks/${id}/centreline.csv`, download: `${id}.csv` }).click();
  }

  async solve() {
    const id = await this.save();
    if (!id) return;
    const isWanted = () => this.isOpen && this.optimum.isConnected;
    const tell = (text) => {
      this.optimum.textContent = text;
    };
    await solveOptimum(this.app.server, id, isWanted, tell).catch((error) => this.app.say(error.message));
  }

  /** A link that holds the track itself. */
  async share() {
    const link = `${location.origin}${location.pathname}#draw?line=${lineToText(this.points, this.width)}`;
    await this.app.copyLink(link, 'The link is copied. It holds the track itself.');
  }

  load(text) {
    const { points, width } = lineFromText(text);
    Object.assign(this, { points, width: Math.min(20, Math.max(7, width)) });
  }

  example() {
    this.points = exampleLine();
    this.changed();
    this.paint();
  }

  handles(context, camera) {
    const { dpr } = this.app.stage;
    const line = this.stroke || this.points;
    if (line.length > 1) {
      context.strokeStyle = this.hasRoad ? 'rgba(255,198,64,.55)' : COLOURS.accent;
      context.lineWidth = 2.5 * dpr;
      context.lineJoin = 'round';
      context.beginPath();
      for (const point of this.stroke ? line : smooth(line)) context.lineTo(...camera.toScreen(...point));
      if (!this.stroke) context.closePath();
      context.stroke();
    }
    this.points.forEach(([x, y], k) => {
      const [sx, sy] = camera.toScreen(x, y);
      const isFault = this.fault?.point === k;
      context.fillStyle = isFault ? COLOURS.loss : k === 0 ? KINDS.optimal : COLOURS.accent;
      context.strokeStyle = COLOURS.background;
      context.lineWidth = 2 * dpr;
      context.beginPath();
      context.arc(sx, sy, (isFault ? 9 : k === this.held ? 8 : 6) * dpr, 0, 7);
      context.fill();
      context.stroke();
    });
  }

  /** The canvas while there is no road for the stage to draw. */
  paint() {
    if (!this.isOpen || this.hasRoad) return;
    const { context, camera, dpr } = this.app.stage;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = COLOURS.ground;
    context.fillRect(0, 0, camera.width, camera.height);
    context.strokeStyle = COLOURS.groundSpeck;
    context.lineWidth = dpr;
    context.beginPath();
    const [x0, y0] = camera.toWorld(0, camera.height);
    for (let x = Math.ceil(x0 / 50) * 50; (x - x0) * camera.scale < camera.width; x += 50) {
      context.moveTo(camera.toScreen(x, 0)[0], 0);
      context.lineTo(camera.toScreen(x, 0)[0], camera.height);
    }
    for (let y = Math.ceil(y0 / 50) * 50; (y - y0) * camera.scale < camera.height; y += 50) {
      context.moveTo(0, camera.toScreen(0, y)[1]);
      context.lineTo(camera.width, camera.toScreen(0, y)[1]);
    }
    context.stroke();
    this.handles(context, camera);
  }
}
