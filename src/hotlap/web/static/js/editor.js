// Draw: a closed line by mouse or finger, pulled into shape, checked by the server, driven at once, saved and shared.

import { checkDrawing, downloadTrack, saveDrawing } from './drawing_store.js';
import { controlPoints, exampleLine, lineFromText, lineToText, MIN_POINTS, strokeLength } from './drawn_line.js';
import { makeEntry } from './drivers.js';
import { EditHistory } from './edit_history.js';
import { showPanel } from './editor_panel.js';
import { drawGrid, drawHandles, reachOf } from './editor_picture.js';
import { solveOptimum } from './optimum.js';
import { panelInsets } from './toolbar.js';

const SPAN_M = 420;
const GRAB_PX = 16;
const CHECK_DELAY_MS = 120;
const CLICK_M = 12; // a line that is shorter is a click beside the points
const FIRST_NAME = 'my-track';

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
      refused: null, // a new line that cannot be driven, while the one before stays
      name: FIRST_NAME,
      saved: null, // the id of the drawing as it is now
      owned: null, // the id that this drawing was saved as before
      history: new EditHistory(),
    });
    const { canvas } = app;
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, () => this.up());
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
    this.hasRoad = false;
    app.stage.isShown = false; // from now on, not from the next frame: it would draw over the grid
    this.fix();
    this.paint();
    if (!this.owned) this.name = await app.server.freeName(FIRST_NAME);
    this.panel();
    this.fix();
    app.announce('Draw a closed line');
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
    this.app.resetCamera();
    stage.camera.isPlaced = false;
    if (this.before) stage.setTrack(this.before);
  }

  /** The picture of all that can be drawn on, beside the panel; and of all of a line that came from elsewhere. */
  fix(line = null) {
    if (line) this.reach = reachOf(line);
    const { stage } = this.app;
    stage.camera.inset = panelInsets(stage);
    stage.camera.fix(SPAN_M, this.reach);
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
    if (!this.isOpen || event.button > 0) return;
    this.app.canvas.setPointerCapture(event.pointerId);
    const [sx, sy] = this.at(event);
    this.held = this.nearest(sx, sy);
    this.isMoved = false;
    if (this.held < 0) this.stroke = [this.app.stage.camera.toWorld(sx, sy)];
    this.paint();
  }

  move(event) {
    if (!this.isOpen || (this.held < 0 && !this.stroke)) return;
    const point = this.app.stage.camera.toWorld(...this.at(event));
    if (this.held >= 0) {
      if (!this.isMoved) this.keep();
      this.isMoved = true;
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
    const { stroke } = this;
    this.stroke = null;
    this.held = -1;
    if (stroke && strokeLength(stroke) > CLICK_M) {
      const points = controlPoints(stroke);
      if (points.length) this.offer(points);
      else this.app.say('That line is too short for a track. Draw a loop.');
    }
    this.paint();
  }

  /** Take a new line: at once where there is no road yet, else when it was found to be one. */
  async offer(points) {
    if (!this.isReady) {
      this.replace(points);
      return;
    }
    const number = (this.checks = (this.checks || 0) + 1);
    const answer = await this.ask(points).catch((error) => ({ ok: false, fault: { point: -1, text: error.message } }));
    if (number !== this.checks || !this.isOpen) return;
    if (answer.ok) this.replace(points);
    else {
      this.refused = { points, text: answer.fault.text };
      this.app.announce(answer.fault.text);
      this.panel();
    }
  }

  /** A new drawing in place of the one before; that one can be had back. */
  replace(points) {
    this.keep();
    this.points = points;
    this.owned = null;
    this.changed();
    this.paint();
    this.app.server.freeName(FIRST_NAME).then((name) => {
      this.name = name;
      if (this.isOpen) this.panel();
    });
  }

  /** Remember the drawing as it is, before it changes. */
  keep() {
    this.history.keep(this.points, this.width);
  }

  /** Go back to what the drawing was before its last change, or forward again. */
  undo(isRedo = false) {
    const { history, points, width } = this;
    const before = isRedo ? history.redo(points, width) : history.undo(points, width);
    if (!before) return;
    Object.assign(this, before);
    if (this.points.length) this.changed();
    else this.empty();
    this.paint();
  }

  clear() {
    this.keep();
    this.empty();
    this.paint();
  }

  empty() {
    clearTimeout(this.timer);
    this.checks = (this.checks || 0) + 1; // what is being checked is not wanted any more
    Object.assign(this, { points: [], fault: null, hasRoad: false, refused: null, owned: null, saved: null });
    this.app.stage.isShown = false;
    this.panel();
  }

  reverse() {
    this.keep();
    this.points = [...this.points].reverse();
    this.changed();
  }

  remove(event) {
    if (!this.isOpen || this.points.length <= MIN_POINTS) return;
    const index = this.nearest(...this.at(event));
    if (index >= 0) {
      this.keep();
      this.points.splice(index, 1);
      this.changed();
      this.paint();
    }
  }

  drawing(line = this.points) {
    return { points: line.map(([x, y]) => [Number(x.toFixed(1)), Number(y.toFixed(1))]), width_m: this.width };
  }

  ask(points) {
    return checkDrawing(this.app, this.drawing(points));
  }

  changed() {
    this.saved = null;
    this.refused = null;
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
      const answer = await this.ask(this.points);
      if (number !== this.checks || !this.isOpen) return;
      this.fault = answer.ok ? null : answer.fault;
      this.hasRoad = answer.ok;
      if (answer.ok) {
        this.road = answer.track;
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
    this.fix();
    stage.onDraw = (context, camera) => drawHandles(this, context, camera);
  }

  panel() {
    showPanel(this);
  }

  /** Save the drawing as a track; then go to a view with it, if one is named. */
  async save(view = null) {
    const { app } = this;
    let id = this.name.trim().toLowerCase();
    try {
      if (this.saved !== id) {
        const isOwn = this.owned === id;
        if (!isOwn) id = await app.server.freeName(id);
        if (id !== this.name.trim().toLowerCase() && !isOwn)
          app.say(`There is a ${this.name} already: saved as ${id}.`);
        await saveDrawing(app, id, this.drawing(), isOwn);
        Object.assign(this, { saved: id, owned: id, name: id });
        if (this.isOpen) this.panel();
      }
      if (view === 'learn') app.pending = { isToTrain: true };
      if (view) await app.go(view, { track: id });
      return id;
    } catch (error) {
      app.say(error.message);
      return null;
    }
  }

  async download() {
    const id = await this.save();
    if (id) await downloadTrack(this.app, id, this.drawing());
  }

  async solve() {
    const id = await this.save();
    if (!id) return;
    const isWanted = () => this.isOpen && this.optimum.isConnected;
    const tell = (text) => this.optimum.replaceChildren(text);
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
    this.fix(points);
  }

  example() {
    const line = exampleLine();
    this.fix(line);
    this.replace(line);
  }

  key(event) {
    if (!(event.ctrlKey || event.metaKey) || !['KeyZ', 'KeyY'].includes(event.code)) return;
    this.undo(event.code === 'KeyY' || event.shiftKey);
    event.preventDefault();
  }

  /** The canvas while there is no road for the stage to draw. */
  paint() {
    if (this.isOpen && !this.hasRoad) drawGrid(this);
  }
}
