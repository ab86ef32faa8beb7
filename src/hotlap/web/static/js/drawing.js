// What moves on the canvas: cars, trails, rays, particles, and the braking line.

import { COLOURS, SPEEDS, speedBand } from './colours.js';

const MAX_PARTICLES = 400;
const MIN_SHOWN = 4.6; // pixels a metre of a car

/** A car of 4.4 by 1.9 m, nose to the right, in metres. */
function carBody() {
  const path = new Path2D();
  path.moveTo(2.2, 0);
  path.quadraticCurveTo(2.2, 0.62, 1.75, 0.8);
  path.lineTo(0.9, 0.86);
  path.lineTo(-1.3, 0.95);
  path.quadraticCurveTo(-2.15, 0.95, -2.2, 0.55);
  path.lineTo(-2.2, -0.55);
  path.quadraticCurveTo(-2.15, -0.95, -1.3, -0.95);
  path.lineTo(0.9, -0.86);
  path.lineTo(1.75, -0.8);
  path.quadraticCurveTo(2.2, -0.62, 2.2, 0);
  path.closePath();
  return path;
}

function carGlass() {
  const path = new Path2D();
  path.moveTo(0.75, 0.62);
  path.quadraticCurveTo(1.15, 0, 0.75, -0.62);
  path.lineTo(0.05, -0.55);
  path.lineTo(-0.95, -0.6);
  path.lineTo(-1.2, -0.45);
  path.lineTo(-1.2, 0.45);
  path.lineTo(-0.95, 0.6);
  path.lineTo(0.05, 0.55);
  path.closePath();
  return path;
}

const BODY = carBody();
const GLASS = carGlass();

/** `pose`: x, y, yaw, steer, brake; `steer` is positive to the right. */
export function drawCar(context, camera, pose, colour, alpha = 1, size = 1) {
  const { scale } = camera;
  const [sx, sy] = camera.toScreen(pose.x, pose.y);
  const shown = Math.max(scale * size, MIN_SHOWN); // a car stays visible on a map of the whole track
  const yaw = pose.yaw - camera.turn;
  const [cos, sin] = [Math.cos(yaw) * shown, Math.sin(yaw) * shown];
  context.globalAlpha = alpha;
  if (scale > 2.5) {
    context.setTransform(cos, -sin, -sin, -cos, sx + 0.35 * scale, sy + 0.45 * scale);
    context.fillStyle = 'rgba(4,7,9,.35)';
    context.fill(BODY);
  }
  context.setTransform(cos, -sin, -sin, -cos, sx, sy);
  if (scale > 3) {
    context.fillStyle = '#0b0d11';
    context.fillRect(-1.75, 0.76, 0.85, 0.36);
    context.fillRect(-1.75, -1.12, 0.85, 0.36);
    const lock = -0.5 * pose.steer;
    for (const side of [0.9, -0.9]) {
      context.save();
      context.translate(1.25, side);
      context.rotate(lock);
      context.fillRect(-0.4, -0.17, 0.8, 0.34);
      context.restore();
    }
  }
  context.fillStyle = colour;
  context.fill(BODY);
  if (scale > 2.5) {
    context.fillStyle = 'rgba(11,13,17,.85)';
    context.fill(GLASS);
    context.fillStyle = colour;
    context.fillRect(-0.75, -0.42, 0.75, 0.84);
    context.fillStyle = 'rgba(255,255,255,.35)';
    context.fillRect(-2.1, -0.12, 1.3, 0.24);
    context.fillRect(0.95, -0.12, 1.15, 0.24);
    context.fillStyle = '#0b0d11';
    context.fillRect(-2.3, -0.95, 0.3, 1.9);
    context.fillStyle = '#fff6d8';
    context.fillRect(1.95, 0.42, 0.16, 0.24);
    context.fillRect(1.95, -0.66, 0.16, 0.24);
    drawBrakeLights(context, pose.brake > 0.08);
  } else {
    context.fillStyle = 'rgba(11,13,17,.8)';
    context.fillRect(-0.9, -0.5, 1.3, 1);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
}

/** Lights at the back, with a glow that one sees from above while the car brakes. */
function drawBrakeLights(context, isBraking) {
  if (isBraking) {
    context.fillStyle = 'rgba(255,40,30,.34)';
    context.beginPath();
    context.ellipse(-2.5, 0, 0.9, 1.2, 0, 0, 7);
    context.fill();
  }
  context.fillStyle = isBraking ? '#ff2a1f' : '#7a1f1b';
  context.fillRect(-2.34, 0.4, 0.3, 0.5);
  context.fillRect(-2.34, -0.9, 0.3, 0.5);
}

/** Many cars, plainly: one rectangle and its nose each. */
export function drawSwarm(context, camera, poses, count, colourOf) {
  const shown = Math.max(camera.scale, 1.9);
  for (let k = 0; k < count; k += 1) {
    const [x, y, yaw] = [poses[3 * k], poses[3 * k + 1], poses[3 * k + 2] - camera.turn];
    if (!camera.sees(x, y)) continue;
    const [sx, sy] = camera.toScreen(x, y);
    const [cos, sin] = [Math.cos(yaw) * shown, Math.sin(yaw) * shown];
    context.setTransform(cos, -sin, -sin, -cos, sx, sy);
    context.fillStyle = colourOf(k);
    context.fillRect(-2.2, -0.95, 4.4, 1.9);
    context.fillStyle = 'rgba(11,13,17,.75)';
    context.fillRect(-0.6, -0.7, 1.5, 1.4);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

/** A name above a car. */
export function drawLabel(context, camera, pose, text, colour, dpr) {
  const [sx, sy] = camera.toScreen(pose.x, pose.y);
  const up = Math.max(3.4 * camera.scale, 15 * dpr);
  context.font = `600 ${12 * dpr}px Inter, system-ui, "DejaVu Sans", sans-serif`;
  const width = context.measureText(text).width + 12 * dpr;
  context.fillStyle = 'rgba(14,17,22,.78)';
  context.beginPath();
  context.roundRect(sx - width / 2, sy - up - 9 * dpr, width, 18 * dpr, 9 * dpr);
  context.fill();
  context.fillStyle = colour;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(text, sx, sy - up + 0.5 * dpr);
}

/** The rays that a policy sees, from its observations. */
export function drawRays(context, camera, pose, obs, rays, dpr) {
  const [cos, sin] = [Math.cos(pose.yaw), Math.sin(pose.yaw)];
  const [sx, sy] = camera.toScreen(pose.x, pose.y);
  context.lineWidth = 1.4 * dpr;
  for (let k = 0; k < rays.cos.length; k += 1) {
    const metres = obs[k] * rays.range_m;
    const dx = cos * rays.cos[k] - sin * rays.sin[k];
    const dy = sin * rays.cos[k] + cos * rays.sin[k];
    const [ex, ey] = camera.toScreen(pose.x + metres * dx, pose.y + metres * dy);
    context.strokeStyle = 'rgba(23,110,220,.65)';
    context.beginPath();
    context.moveTo(sx, sy);
    context.lineTo(ex, ey);
    context.stroke();
    context.fillStyle = '#1f8fff';
    context.beginPath();
    context.arc(ex, ey, 3.2 * dpr, 0, 7);
    context.fill();
  }
}

/** The way a car came, the newest part; by speed or in its own colour. */
export class Trail {
  constructor(length = 260) {
    this.length = length;
    this.points = [];
  }

  add(x, y, speed) {
    const last = this.points.at(-1);
    if (last && Math.hypot(x - last[0], y - last[1]) > 12) this.points = []; // the car was put back
    this.points.push([x, y, speed]);
    if (this.points.length > this.length) this.points.shift();
  }

  draw(context, camera, colour, topSpeed, bySpeed, dpr) {
    const { points } = this;
    if (points.length < 3) return;
    context.lineWidth = Math.max(bySpeed ? 0.7 * camera.scale : 0.4 * camera.scale, 1.6 * dpr);
    context.lineCap = 'round';
    const step = 3;
    let [band, isOpen] = [-1, false];
    context.globalAlpha = bySpeed ? 0.9 : 0.32;
    context.strokeStyle = colour;
    for (let k = 0; k + step < points.length; k += step) {
      const [x, y, speed] = points[k];
      const now = bySpeed ? speedBand(speed, topSpeed) : 0;
      if (now !== band || !isOpen) {
        if (isOpen) context.stroke();
        if (bySpeed) context.strokeStyle = SPEEDS[now];
        context.beginPath();
        context.moveTo(...camera.toScreen(x, y));
        [band, isOpen] = [now, true];
      }
      context.lineTo(...camera.toScreen(points[k + step][0], points[k + step][1]));
    }
    if (isOpen) context.stroke();
    context.globalAlpha = 1;
  }
}

/** Dust, smoke and sparks. */
export class Particles {
  constructor() {
    this.list = [];
  }

  add(kind, x, y, vx, vy) {
    if (this.list.length > MAX_PARTICLES) this.list.shift();
    const life = kind === 'spark' ? 0.35 : 0.8;
    const spread = kind === 'spark' ? 9 : 1.4;
    this.list.push({
      kind,
      x,
      y,
      age: 0,
      life: life * (0.6 + 0.8 * Math.random()),
      vx: vx + spread * (Math.random() - 0.5),
      vy: vy + spread * (Math.random() - 0.5),
    });
  }

  update(seconds) {
    for (const one of this.list) {
      one.age += seconds;
      one.x += one.vx * seconds;
      one.y += one.vy * seconds;
    }
    this.list = this.list.filter((one) => one.age < one.life);
  }

  draw(context, camera) {
    for (const one of this.list) {
      if (!camera.sees(one.x, one.y)) continue;
      const [sx, sy] = camera.toScreen(one.x, one.y);
      const fraction = one.age / one.life;
      if (one.kind === 'spark') {
        context.fillStyle = fraction < 0.4 ? '#fff2c4' : COLOURS.accent;
        const size = Math.max(1.5, 0.22 * camera.scale);
        context.fillRect(sx - size / 2, sy - size / 2, size, size);
      } else {
        context.globalAlpha = 0.5 * (1 - fraction);
        context.fillStyle = COLOURS[one.kind];
        const size = (0.5 + 2.2 * fraction) * camera.scale;
        context.beginPath();
        context.arc(sx, sy, size / 2, 0, 7);
        context.fill();
        context.globalAlpha = 1;
      }
    }
  }
}

/** The optimal line ahead of a car: green to accelerate, yellow to lift, red to brake at its present speed. */
export function drawBrakingLine(context, camera, track, arc, speed, dpr) {
  const { line } = track;
  if (!line) return;
  const count = line.x.length;
  const spacing = track.length_m / count;
  const first = Math.floor(arc / spacing);
  const ahead = Math.ceil((40 + 3.2 * speed) / spacing);
  const decel = 11;
  for (let k = 3; k < ahead; k += 3) {
    const at = (first + k) % count;
    // The speed at this point if the car does not brake before it, against the optimum's from here on.
    let excess = 0;
    for (let j = 0; j < 24; j += 4) {
      const there = line.speed[(at + j) % count];
      const possible = Math.sqrt(there * there + 2 * decel * j * spacing);
      excess = Math.max(excess, speed - possible);
    }
    const colour = excess > 2 ? COLOURS.loss : excess > -1.5 ? '#ffd84a' : '#5fe08a';
    const [sx, sy] = camera.toScreen(line.x[at], line.y[at]);
    const next = (at + 1) % count;
    const angle = camera.turn - Math.atan2(line.y[next] - line.y[at], line.x[next] - line.x[at]);
    const size = Math.max(1.0 * camera.scale, 4 * dpr);
    context.globalAlpha = 0.95 - 0.6 * (k / ahead);
    context.fillStyle = colour;
    context.setTransform(
      Math.cos(angle) * size,
      Math.sin(angle) * size,
      -Math.sin(angle) * size,
      Math.cos(angle) * size,
      sx,
      sy,
    );
    context.beginPath();
    context.moveTo(1, 0);
    context.lineTo(-0.8, 0.9);
    context.lineTo(-0.2, 0);
    context.lineTo(-0.8, -0.9);
    context.fill();
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalAlpha = 1;
}
