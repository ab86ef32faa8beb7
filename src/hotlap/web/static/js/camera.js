// The camera: what part of the world is on the canvas. North is up. Zoom rests on levels, for which tiles are drawn.

const LEVELS_PER_DOUBLING = 4;
const MIN_SCALE = 0.1;
const MAX_SCALE = 40;
const FOLLOW_SPAN_M = 116; // of the shorter side
const LOOK_AHEAD_S = 0.8;
const LOOK_AHEAD_FRACTION = 0.27; // of the picture, at most

const NO_INSET = { top: 0, right: 0, bottom: 0, left: 0 };

export const levelScale = (level) => 2 ** (level / LEVELS_PER_DOUBLING);
export const nearestLevel = (scale) => Math.round(Math.log2(scale) * LEVELS_PER_DOUBLING);

export class Camera {
  constructor() {
    Object.assign(this, {
      x: 0,
      y: 0,
      scale: 4,
      width: 1,
      height: 1,
      mode: 'follow',
      zoomSteps: 0,
      targetLevel: null,
      isPlaced: false,
    });
    this.inset = NO_INSET; // covered by panels, in canvas pixels; not when a car is followed
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.isPlaced = false;
  }

  /** Stay with the origin in the middle of what no panel covers, and a number of metres across its shorter side. */
  fix(spanM) {
    const { inset } = this;
    this.mode = 'fixed';
    const [width, height] = [this.width - inset.left - inset.right, this.height - inset.top - inset.bottom];
    this.scale = levelScale(nearestLevel(Math.min(width, height) / spanM));
    this.x = (inset.right - inset.left) / 2 / this.scale;
    this.y = (inset.top - inset.bottom) / 2 / this.scale;
  }

  /** Show the whole track, or follow; a new mode begins with its own zoom. */
  setMode(mode) {
    this.mode = mode;
    this.zoomSteps = 0;
  }

  zoom(steps) {
    this.zoomSteps = Math.max(-16, Math.min(16, this.zoomSteps + steps));
  }

  wantedLevel(track) {
    const inset = this.mode === 'follow' ? NO_INSET : this.inset;
    const width = this.width - inset.left - inset.right;
    const height = this.height - inset.top - inset.bottom;
    let scale;
    if (this.mode === 'follow') scale = Math.min(width, height) / FOLLOW_SPAN_M;
    else {
      const { box } = track;
      scale = Math.min((0.94 * width) / (box.x1 - box.x0), (0.94 * height) / (box.y1 - box.y0));
    }
    const fitted = this.mode === 'follow' ? nearestLevel(scale) : Math.floor(Math.log2(scale) * LEVELS_PER_DOUBLING);
    const level = fitted + this.zoomSteps;
    return Math.max(nearestLevel(MIN_SCALE), Math.min(nearestLevel(MAX_SCALE), level));
  }

  /** Move towards the target; `target` has x, y and velocity vx, vy (m/s), or is null. */
  update(track, target, seconds) {
    if (this.mode === 'fixed') return;
    const level = this.wantedLevel(track);
    const wanted = levelScale(level);
    let [x, y] = [this.x, this.y];
    if (this.mode === 'follow' && target) {
      // Look ahead in the direction of travel, so that more of the road to come is seen.
      const clip = (metres, side) =>
        Math.max(-LOOK_AHEAD_FRACTION * side, Math.min(LOOK_AHEAD_FRACTION * side, metres * wanted)) / wanted;
      x = target.x + clip(LOOK_AHEAD_S * target.vx, this.width);
      y = target.y + clip(LOOK_AHEAD_S * target.vy, this.height);
    } else if (this.mode !== 'follow') {
      x = (track.box.x0 + track.box.x1) / 2;
      y = (track.box.y0 + track.box.y1) / 2;
    }
    const inset = this.mode === 'follow' ? NO_INSET : this.inset;
    const offsetX = (inset.left - inset.right) / 2 / wanted;
    const offsetY = (inset.top - inset.bottom) / 2 / wanted;
    x -= offsetX;
    y += offsetY;
    if (!this.isPlaced) {
      Object.assign(this, { x, y, scale: wanted, isPlaced: true });
      return;
    }
    const isFar = Math.hypot(x - this.x, y - this.y) * this.scale > 1.5 * Math.max(this.width, this.height);
    const fraction = isFar ? 1 : 1 - Math.exp(-seconds * (this.mode === 'follow' ? 5 : 6));
    this.x += fraction * (x - this.x);
    this.y += fraction * (y - this.y);
    const ratio = wanted / this.scale;
    const closeEnough = Math.abs(Math.log2(ratio)) < 0.01;
    this.scale = closeEnough ? wanted : this.scale * ratio ** (1 - Math.exp(-seconds * 9));
  }

  get isAtRest() {
    return Math.abs(this.scale - levelScale(nearestLevel(this.scale))) < 1e-9;
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, this.height / 2 - (y - this.y) * this.scale];
  }

  toWorld(sx, sy) {
    return [(sx - this.width / 2) / this.scale + this.x, (this.height / 2 - sy) / this.scale + this.y];
  }

  sees(x, y, marginM = 8) {
    return (
      Math.abs(x - this.x) < this.width / 2 / this.scale + marginM &&
      Math.abs(y - this.y) < this.height / 2 / this.scale + marginM
    );
  }
}
