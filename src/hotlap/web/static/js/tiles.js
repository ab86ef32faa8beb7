// The still picture of a track: drawn once per zoom level into tiles, which are copied to the canvas.

import { findBridges, paintBridge } from './bridges.js';
import { levelScale, nearestLevel } from './camera.js';
import { COLOURS, setTheme, SPEEDS, speedBand } from './colours.js';
import { furnish, grain, paintGround } from './scenery.js';
import { makeGround, themeOf } from './themes.js';
import { findTrackside, paintSigns, paintTyres } from './trackside.js';

const TILE = 384; // pixels
const SEAM = 1; // pixels around a tile that its neighbours have too, so that no gap is seen between turned ones
const MAX_TILES = 140;
const MAX_NEW_TILES_PER_FRAME = 3;
const OVERVIEW = 1400; // pixels of its longer side
const AROUND_M = 120;
const KERB_CURVATURE = 1 / 75;
const EXIT_KERB_M = 16;
const KERB_M = 1.25; // wide
const MAX_SKIDS = 4000;

/** The first and last point of a closed band of the road between two lines, as one path. */
function band(one, other) {
  const path = new Path2D();
  const count = one.x.length;
  path.moveTo(one.x[0], one.y[0]);
  for (let k = 1; k <= count; k += 1) path.lineTo(one.x[k % count], one.y[k % count]);
  for (let k = count; k >= 0; k -= 1) path.lineTo(other.x[k % count], other.y[k % count]);
  path.closePath();
  return path;
}

function loop(line, step = 1) {
  const path = new Path2D();
  path.moveTo(line.x[0], line.y[0]);
  for (let k = step; k < line.x.length; k += step) path.lineTo(line.x[k], line.y[k]);
  path.closePath();
  return path;
}

export class TrackPicture {
  constructor(track, topSpeed) {
    this.track = track;
    this.topSpeed = topSpeed;
    this.tiles = new Map();
    this.skids = [];
    this.showLine = false;
    this.paths = {
      runoff: band(track.wallLeft, track.wallRight),
      road: band(track.left, track.right),
      wallLeft: loop(track.wallLeft),
      wallRight: loop(track.wallRight),
      left: loop(track.left),
      right: loop(track.right),
      kerbs: this.kerbs(),
      rubber: track.line ? loop(track.line) : loop(track.centre),
    };
    this.bridges = findBridges(track);
    const theme = themeOf(track);
    const ground = makeGround(track, theme);
    setTheme(theme);
    this.surroundings = { theme, ground, things: furnish(track, theme, ground) };
    this.trackside = findTrackside(track);
    this.line = track.line ? this.speedLine() : null;
  }

  /** Kerbs on the inside of bends, and on the outside where a car comes out of one. */
  kerbs() {
    const { track } = this;
    const { numNodes, curvature } = track;
    const exit = Math.round(EXIT_KERB_M / track.stepM);
    const path = new Path2D();
    for (const [edge, sign] of [
      [track.left, 1],
      [track.right, -1],
    ]) {
      let isOn = false;
      let sinceBend = Infinity; // nodes since a bend with this edge on its outside
      for (let n = -exit; n <= numNodes; n += 1) {
        const k = (n + numNodes) % numNodes;
        const bend = sign * curvature[k];
        sinceBend = bend < -KERB_CURVATURE ? 0 : sinceBend + 1;
        const isExit = sinceBend > 0 && sinceBend <= exit && bend > -KERB_CURVATURE;
        if (n >= 0 && n < numNodes && (bend > KERB_CURVATURE || isExit)) {
          if (isOn) path.lineTo(edge.x[k], edge.y[k]);
          else path.moveTo(edge.x[k], edge.y[k]);
          isOn = true;
        } else isOn = false;
      }
    }
    return path;
  }

  speedLine() {
    const { line } = this.track;
    const paths = SPEEDS.map(() => new Path2D());
    for (let k = 0; k < line.x.length; k += 1) {
      const n = (k + 1) % line.x.length;
      const path = paths[speedBand(line.speed[k], this.topSpeed)];
      path.moveTo(line.x[k], line.y[k]);
      path.lineTo(line.x[n], line.y[n]);
    }
    return paths;
  }

  setLine(isShown) {
    if (isShown !== this.showLine) {
      this.showLine = isShown;
      this.whole = null;
      this.tiles.clear();
    }
  }

  /** Add a skid mark between two points (m); kept on the tiles and for new ones. */
  addSkid(x0, y0, x1, y1) {
    this.skids.push([x0, y0, x1, y1]);
    if (this.skids.length > MAX_SKIDS) this.skids.splice(0, MAX_SKIDS / 2);
    for (const tile of this.tiles.values()) {
      if (x1 > tile.x0 - 1 && x1 < tile.x1 + 1 && y1 > tile.y0 - 1 && y1 < tile.y1 + 1)
        this.drawSkids(tile, [[x0, y0, x1, y1]]);
    }
  }

  clearSkids() {
    if (!this.skids.length) return;
    this.skids = [];
    this.tiles.clear();
  }

  drawSkids(tile, skids) {
    const { context } = tile;
    context.strokeStyle = COLOURS.skid;
    context.lineWidth = 0.28;
    context.lineCap = 'butt';
    context.beginPath();
    for (const [x0, y0, x1, y1] of skids) {
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
    }
    context.stroke();
  }

  draw(context, camera) {
    const level = nearestLevel(camera.scale);
    const scale = levelScale(level);
    const isExact = !camera.turn && Math.abs(camera.scale / scale - 1) < 1e-6;
    // The world's origin on the canvas; whole pixels at rest, so that copying needs no smoothing.
    const size = (TILE * camera.scale) / scale;
    const seam = (SEAM * camera.scale) / scale;
    const [originX, originY] = [
      camera.width / 2 - camera.x * camera.scale,
      camera.height / 2 + camera.y * camera.scale,
    ];
    const box = camera.box();
    const metres = TILE / scale;
    const [i0, i1] = [Math.floor(box.x0 / metres), Math.floor(box.x1 / metres)];
    const [j0, j1] = [Math.floor(-box.y1 / metres), Math.floor(-box.y0 / metres)];
    this.budget = this.tiles.size ? MAX_NEW_TILES_PER_FRAME : Infinity;
    context.fillStyle = COLOURS.ground;
    if (camera.turn) {
      context.translate(camera.width / 2, camera.height / 2);
      context.rotate(camera.turn);
      context.translate(-camera.width / 2, -camera.height / 2);
    }
    for (let j = j0; j <= j1; j += 1) {
      for (let i = i0; i <= i1; i += 1) {
        const tile = this.find(level, i, j);
        const [x, y] = [originX + i * size, originY + j * size];
        if (!tile) this.drawBlurred(context, metres, i, j, x, y, size);
        else if (isExact) context.drawImage(tile.canvas, Math.round(x) - SEAM, Math.round(y) - SEAM);
        else context.drawImage(tile.canvas, x - seam, y - seam, size + 2 * seam, size + 2 * seam);
      }
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= MAX_TILES) break;
      this.tiles.delete(key);
    }
  }

  /** A tile, painted where it is not there yet and few others were for this frame; else null. */
  find(level, i, j) {
    const key = `${level}:${i}:${j}`;
    let tile = this.tiles.get(key);
    if (!tile && this.budget > 0) {
      this.budget -= 1;
      tile = this.paint(levelScale(level), i, j);
    }
    if (!tile) return null;
    this.tiles.delete(key); // the most recently used are last
    this.tiles.set(key, tile);
    return tile;
  }

  /** Draw tile (i, j), counted from the world's origin to the right and down. */
  paint(scale, i, j) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = TILE + 2 * SEAM;
    const context = canvas.getContext('2d', { alpha: false });
    const metres = TILE / scale;
    const tile = { canvas, context, x0: i * metres, x1: (i + 1) * metres, y0: -(j + 1) * metres, y1: -j * metres };
    context.setTransform(scale, 0, 0, -scale, SEAM - i * TILE, SEAM - j * TILE);
    this.render(context, tile, scale);
    this.drawSkids(
      tile,
      this.skids.filter(([x, y]) => x > tile.x0 - 2 && x < tile.x1 + 2 && y > tile.y0 - 2 && y < tile.y1 + 2),
    );
    this.tiles.set(`${nearestLevel(scale)}:${i}:${j}`, tile);
    return tile;
  }

  /** All of the track in one small picture, which is shown where a tile is not painted yet. */
  overview() {
    if (this.whole) return this.whole;
    const { box } = this.track;
    const area = { x0: box.x0 - AROUND_M, x1: box.x1 + AROUND_M, y0: box.y0 - AROUND_M, y1: box.y1 + AROUND_M };
    const scale = OVERVIEW / Math.max(area.x1 - area.x0, area.y1 - area.y0);
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil((area.x1 - area.x0) * scale);
    canvas.height = Math.ceil((area.y1 - area.y0) * scale);
    const context = canvas.getContext('2d', { alpha: false });
    context.setTransform(scale, 0, 0, -scale, -area.x0 * scale, area.y1 * scale);
    this.render(context, area, scale);
    this.whole = { canvas, scale, ...area };
    return this.whole;
  }

  /** Part of the overview in the place of a tile. */
  drawBlurred(context, metres, i, j, x, y, size) {
    const { canvas, scale, x0, y1 } = this.overview();
    const side = metres * scale;
    context.fillRect(Math.floor(x), Math.floor(y), Math.ceil(size) + 1, Math.ceil(size) + 1);
    context.drawImage(canvas, (i * metres - x0) * scale, (y1 + j * metres) * scale, side, side, x, y, size, size);
  }

  /** Draw what lies in an area (m), at a scale (pixels a metre). */
  render(context, tile, scale) {
    context.fillStyle = COLOURS.ground;
    context.fillRect(
      tile.x0 - 2 / scale,
      tile.y0 - 2 / scale,
      tile.x1 - tile.x0 + 4 / scale,
      tile.y1 - tile.y0 + 4 / scale,
    );
    paintGround(context, tile, scale, this.surroundings);
    const { paths } = this;
    const px = 1 / scale;
    context.lineJoin = 'round';
    context.fillStyle = COLOURS.runoff;
    context.fill(paths.runoff);
    context.fillStyle = COLOURS.road;
    context.fill(paths.road);
    if (scale > 3) {
      context.fillStyle = grain(context);
      context.fill(paths.road);
    }
    if (scale > 1) {
      context.strokeStyle = COLOURS.rubber;
      context.lineWidth = 3.2;
      context.stroke(paths.rubber);
      context.lineWidth = 1.5;
      context.stroke(paths.rubber);
    }
    context.strokeStyle = COLOURS.edge;
    context.lineWidth = Math.max(0.22, 0.9 * px);
    context.stroke(paths.left);
    context.stroke(paths.right);
    if (scale > 0.8) this.paintKerbs(context);
    if (scale > 1.2) paintTyres(context, this.trackside);
    this.paintWalls(context, px);
    if (scale > 1.2) paintSigns(context, tile, this.trackside);
    for (const bridge of this.bridges) paintBridge(context, bridge, px);
    this.paintStart(context, scale);
    if (this.showLine && this.line) {
      context.lineWidth = Math.max(0.5, 1.6 * px);
      context.lineCap = 'round';
      this.line.forEach((path, speed) => {
        context.strokeStyle = SPEEDS[speed];
        context.stroke(path);
      });
    }
  }

  paintKerbs(context) {
    context.lineCap = 'butt';
    context.lineWidth = KERB_M;
    context.strokeStyle = COLOURS.edge;
    context.stroke(this.paths.kerbs);
    context.strokeStyle = COLOURS.kerb;
    context.setLineDash([1.8, 1.8]);
    context.stroke(this.paths.kerbs);
    context.setLineDash([]);
  }

  paintWalls(context, px) {
    for (const path of [this.paths.wallLeft, this.paths.wallRight]) {
      context.strokeStyle = COLOURS.shadow;
      context.lineWidth = Math.max(1.1, 2 * px);
      context.stroke(path);
      context.strokeStyle = COLOURS.wall;
      context.lineWidth = Math.max(0.45, 1.1 * px);
      context.stroke(path);
    }
  }

  paintStart(context, scale) {
    const { track } = this;
    const [x0, y0, x1, y1] = [track.right.x[0], track.right.y[0], track.left.x[0], track.left.y[0]];
    const width = Math.hypot(x1 - x0, y1 - y0);
    context.save();
    context.translate(x0, y0);
    context.rotate(Math.atan2(y1 - y0, x1 - x0));
    const squares = Math.max(4, Math.round(width / 0.8));
    const side = width / squares;
    const rows = scale < 2 ? 3 : 2;
    for (let k = 0; k < squares; k += 1) {
      for (let row = 0; row < rows; row += 1) {
        context.fillStyle = (k + row) % 2 ? COLOURS.background : COLOURS.edge;
        context.fillRect(k * side, (row - rows / 2) * side, side, side);
      }
    }
    context.restore();
  }
}
