// The camera: what part of the world is on the canvas, and which way is up. Where north is up, zoom rests on levels,
// for which tiles are drawn.

const LEVELS_PER_DOUBLING = 4;
const MIN_SCALE = 0.1;
const MAX_SCALE = 40;
const FOLLOW_SPAN_M = 74; // of the shorter side, standing
const FAST_SPAN_M = 116; // and at high speed
const FAST_MPS = 55;
const LOOK_AHEAD_S = 0.8;
const LOOK_AHEAD_FRACTION = 0.27; // of the picture, at most
const CHASE_PLACE = 0.7; // of the height: where the car is when the road ahead is up
const TURN_RATE_PER_S = 4.5;
const LEVEL_SLACK = 0.8; // of a level: how far the wanted zoom may be off before another level is taken

const NO_INSET = { top: 0, right: 0, bottom: 0, left: 0 };

/** The cameras that a person chooses from: the car's way is up, north is up, all of the track. */
export const MODES = ['chase', 'follow', 'track'];

export const levelScale = (level) => 2 ** (level / LEVELS_PER_DOUBLING);
export const nearestLevel = (scale) => Math.round(Math.log2(scale) * LEVELS_PER_DOUBLING);

export class Camera {
  constructor() {
    Object.assign(this, {
      x: 0,
      y: 0,
      scale: 4,
      turn: 0, // of the picture's right against east (rad)
      width: 1,
      height: 1,
      mode: 'follow',
      zoomSteps: 0,
      level: null,
      isPlaced: false,
    });
    this.isStill = wantsNoMotion();
    this.inset = NO_INSET; // covered by panels, in canvas pixels; not when a car is followed
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.isPlaced = false;
  }

  /** Stay with the origin in the middle of what no panel covers, a number of metres across its shorter side, and all
   * that is at most so far from the origin (m, east and north) in sight. */
  fix(spanM, reach = [0, 0]) {
    const { inset } = this;
    this.mode = 'fixed';
    this.turn = 0;
    const [width, height] = [this.width - inset.left - inset.right, this.height - inset.top - inset.bottom];
    const level = nearestLevel(Math.min(width, height) / spanM);
    const most = Math.min(width / 2 / reach[0], height / 2 / reach[1]);
    this.scale = levelScale(Math.min(level, Math.floor(Math.log2(most) * LEVELS_PER_DOUBLING)));
    this.x = (inset.right - inset.left) / 2 / this.scale;
    this.y = (inset.top - inset.bottom) / 2 / this.scale;
  }

  /** Show the whole track, or go with a car; a new mode begins with its own zoom. */
  setMode(mode) {
    if (mode === this.mode) return;
    this.mode = mode;
    this.zoomSteps = 0;
    this.level = null;
    this.isPlaced = false;
  }

  zoom(steps) {
    this.zoomSteps = Math.max(-16, Math.min(16, this.zoomSteps + steps));
  }

  /** The zoom that is wanted, in levels and parts of them. */
  wantedLevel(track, target) {
    let exact;
    if (this.mode === 'track') {
      const { box } = track;
      const width = this.width - this.inset.left - this.inset.right;
      const height = this.height - this.inset.top - this.inset.bottom;
      const scale = Math.min((0.94 * width) / (box.x1 - box.x0), (0.94 * height) / (box.y1 - box.y0));
      exact = Math.floor(Math.log2(scale) * LEVELS_PER_DOUBLING);
    } else {
      const fast = Math.min(1, Math.hypot(target?.vx ?? 0, target?.vy ?? 0) / FAST_MPS);
      const span = FOLLOW_SPAN_M + (FAST_SPAN_M - FOLLOW_SPAN_M) * fast;
      exact = Math.log2(Math.min(this.width, this.height) / span) * LEVELS_PER_DOUBLING;
    }
    const level = exact + this.zoomSteps;
    return Math.max(nearestLevel(MIN_SCALE), Math.min(nearestLevel(MAX_SCALE), level));
  }

  /** The scale that is wanted: any with a turning picture, else a level's, which does not flutter. */
  wantedScale(track, target) {
    const wanted = this.wantedLevel(track, target);
    if (this.mode === 'chase') return levelScale(wanted);
    if (this.level === null || Math.abs(wanted - this.level) > LEVEL_SLACK) this.level = Math.round(wanted);
    return levelScale(this.level);
  }

  /** Move towards the target; `target` has x, y, yaw and velocity vx, vy (m/s), or is null. */
  update(track, target, seconds) {
    if (this.mode === 'fixed') return;
    const wanted = this.wantedScale(track, target);
    const isFirst = !this.isPlaced || (this.mode === 'track' && this.isStill);
    this.rotate(target, isFirst ? 1 : 1 - Math.exp(-seconds * TURN_RATE_PER_S));
    const ratio = wanted / this.scale;
    const isClose = Math.abs(Math.log2(ratio)) < 0.01 && this.mode !== 'chase';
    this.scale = isFirst || isClose ? wanted : this.scale * ratio ** (1 - Math.exp(-seconds * 4));
    const [x, y] = this.place(track, target, wanted);
    this.isPlaced = true;
    const isFar = Math.hypot(x - this.x, y - this.y) * this.scale > 1.5 * Math.max(this.width, this.height);
    const isFirm = isFirst || isFar || (this.mode === 'chase' && target);
    const fraction = isFirm ? 1 : 1 - Math.exp(-seconds * (this.mode === 'follow' ? 5 : 6));
    this.x += fraction * (x - this.x);
    this.y += fraction * (y - this.y);
  }

  /** Turn towards the way the car goes, or north. */
  rotate(target, fraction) {
    if (this.mode !== 'chase' || !target) {
      if (this.mode !== 'chase') this.turn = 0;
      return;
    }
    let off = target.yaw - Math.PI / 2 - this.turn;
    off -= 2 * Math.PI * Math.round(off / (2 * Math.PI));
    this.turn += fraction * off;
  }

  /** The point of the world that should be in the middle of the canvas. */
  place(track, target, wanted) {
    if (this.mode === 'track') {
      const { box } = track;
      const { inset } = this;
      return [
        (box.x0 + box.x1) / 2 - (inset.left - inset.right) / 2 / wanted,
        (box.y0 + box.y1) / 2 + (inset.top - inset.bottom) / 2 / wanted,
      ];
    }
    if (!target) return [this.x, this.y];
    if (this.mode === 'chase') {
      const ahead = ((CHASE_PLACE - 0.5) * this.height) / this.scale;
      return [target.x - Math.sin(this.turn) * ahead, target.y + Math.cos(this.turn) * ahead];
    }
    // Look ahead in the direction of travel, so that more of the road to come is seen.
    const clip = (metres, side) =>
      Math.max(-LOOK_AHEAD_FRACTION * side, Math.min(LOOK_AHEAD_FRACTION * side, metres * wanted)) / wanted;
    return [
      target.x + clip(LOOK_AHEAD_S * target.vx, this.width),
      target.y + clip(LOOK_AHEAD_S * target.vy, this.height),
    ];
  }

  /** The same view on a canvas of half the pixels. */
  atHalf() {
    const { width, height, scale } = this;
    return Object.assign(Object.create(this), { width: width / 2, height: height / 2, scale: scale / 2 });
  }

  toScreen(x, y) {
    const [dx, dy] = [(x - this.x) * this.scale, (y - this.y) * this.scale];
    if (!this.turn) return [dx + this.width / 2, this.height / 2 - dy];
    const [cos, sin] = [Math.cos(this.turn), Math.sin(this.turn)];
    return [cos * dx + sin * dy + this.width / 2, this.height / 2 + sin * dx - cos * dy];
  }

  toWorld(sx, sy) {
    const [right, up] = [(sx - this.width / 2) / this.scale, (this.height / 2 - sy) / this.scale];
    const [cos, sin] = [Math.cos(this.turn), Math.sin(this.turn)];
    return [this.x + cos * right - sin * up, this.y + sin * right + cos * up];
  }

  sees(x, y, marginM = 8) {
    const [sx, sy] = this.toScreen(x, y);
    const margin = marginM * this.scale;
    return sx > -margin && sy > -margin && sx < this.width + margin && sy < this.height + margin;
  }

  /** The part of the world on the canvas (m), as a box along its axes. */
  box() {
    const [cos, sin] = [Math.abs(Math.cos(this.turn)), Math.abs(Math.sin(this.turn))];
    const halfX = (cos * this.width + sin * this.height) / 2 / this.scale;
    const halfY = (sin * this.width + cos * this.height) / 2 / this.scale;
    return { x0: this.x - halfX, x1: this.x + halfX, y0: this.y - halfY, y1: this.y + halfY };
  }
}

const wantsNoMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** The camera that a visitor sees first: on a phone the road ahead is up; who wants no motion gets one that stays. */
export function firstMode() {
  if (wantsNoMotion()) return 'track';
  return matchMedia('(pointer: coarse)').matches ? 'chase' : 'follow';
}
