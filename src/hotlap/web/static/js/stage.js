// The stage: cars driving on a track, tick by tick, and the picture of them, frame by frame.

import { drawOver } from './bridges.js';
import { Camera } from './camera.js';
import { COLOURS, setNight } from './colours.js';
import { drawCar, drawLabel, drawRays, drawSwarm, Particles, Trail } from './drawing.js';
import { World } from './engine.js';
import { bestLap, Run } from './replay.js';
import { drawMap } from './minimap.js';
import { recall, remember } from './storage.js';
import { TrackPicture } from './tiles.js';
import { TurnedGround } from './turned_ground.js';

const MAX_FRAME_S = 0.1;
const GHOST_NEAR_M = 9;

export class Stage {
  constructor(engine, canvas, minimap) {
    Object.assign(this, {
      engine,
      canvas,
      minimap,
      track: null,
      cars: [],
      swarm: null,
      focus: 0,
      paused: false,
      pace: 1,
      tick: 0,
      debt: 0,
      showRays: false,
      showLine: false,
      bySpeed: false,
      showLabels: true,
      carSize: 1.25, // larger than it is; less where cars touch
      onTick: null,
      onDraw: null,
      isShown: true,
      frames: [],
      works: [],
    });
    setNight(this.isNight);
    this.context = canvas.getContext('2d', { alpha: false });
    this.camera = new Camera();
    this.ground = new TurnedGround();
    this.particles = new Particles();
    this.tickSeconds = 1 / engine.ticksPerSecond;
    new ResizeObserver(() => this.resize()).observe(canvas);
    // The map's box is hidden in some views, and has no size there.
    if (minimap) new ResizeObserver(() => this.resizeMap()).observe(minimap);
    this.resize();
    this.last = performance.now();
    const frame = (now) => {
      requestAnimationFrame(frame);
      this.frame(now);
    };
    requestAnimationFrame(frame);
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    // More than two pixels per point cost time and are hardly seen.
    this.dpr = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [
      Math.max(1, Math.round(box.width * this.dpr)),
      Math.max(1, Math.round(box.height * this.dpr)),
    ];
    if (width !== this.canvas.width || height !== this.canvas.height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.camera.resize(width, height);
    }
    this.resizeMap();
  }

  resizeMap() {
    if (!this.minimap || !this.track) return;
    const box = this.minimap.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * this.dpr), Math.round(box.height * this.dpr)];
    this.mapLayer = null;
    if (!width || !height) return;
    this.minimap.width = width;
    this.minimap.height = height;
    this.mapLayer = document.createElement('canvas');
    this.mapLayer.width = width;
    this.mapLayer.height = height;
    this.mapProject = drawMap(this.mapLayer, this.track, { road: 'rgba(238,241,244,.75)', width: 3, dpr: this.dpr });
  }

  setTrack(track) {
    if (this.track === track) return;
    this.track = track;
    this.picture = new TrackPicture(track, this.engine.topSpeed);
    this.camera.isPlaced = false;
    this.setCars([]);
    this.setSwarm(null);
    this.resizeMap();
  }

  get isNight() {
    return recall('night', false);
  }

  set isNight(isNight) {
    remember('night', isNight);
    setNight(isNight);
    this.renewPicture();
  }

  /** Draw the track anew where something of it changed; the cars drive on. */
  renewPicture() {
    if (this.track) this.picture = new TrackPicture(this.track, this.engine.topSpeed);
  }

  /** Put cars on the start line; `entries` say who drives, `makeWorld` where, if not each car for itself. */
  setCars(entries, focus = 0, makeWorld = null) {
    this.focus = focus;
    this.tick = 0;
    this.debt = 0;
    this.onTick = null;
    this.onDraw = null;
    this.paused = false;
    this.particles = new Particles();
    this.picture?.clearSkids();
    if (!entries.length) {
      this.cars = [];
      this.world = null;
      return;
    }
    const make = makeWorld || ((...given) => new World(...given));
    this.world = make(this.engine, this.track, entries.length);
    this.cars = entries.map((entry, index) => ({
      ...entry,
      index,
      pilot: entry.makePilot(this.world, index),
      laps: [],
      trail: new Trail(),
      pose: null,
      before: null,
      lastWheels: null,
    }));
    this.world.reset();
    for (const car of this.cars) this.begin(car);
  }

  begin(car) {
    car.pilot.begin?.();
    car.run = new Run(this.world, car.index);
    car.pose = this.pose(car);
    car.before = car.pose;
    car.lastWheels = null;
    car.trail = new Trail();
  }

  /** All cars back on the line; laps driven before are kept where `keepLaps` is set. */
  restart(keepLaps = false) {
    this.world.reset();
    this.tick = 0;
    this.debt = 0;
    for (const car of this.cars) {
      if (!keepLaps) car.laps = [];
      this.begin(car);
    }
  }

  setSwarm(swarm) {
    this.swarm = swarm;
  }

  /** A car's pose after the present tick. */
  pose(car) {
    return car.poseAt ? car.poseAt(this.tick) : this.world.pose(car.index);
  }

  /** One tick of everything. */
  advance() {
    const { world } = this;
    if (world) {
      for (const car of this.cars) {
        if (car.pilot.isDone) {
          world.reset(car.index);
          this.begin(car);
        }
        car.pilot.act(world, car.index);
      }
      world.step();
      this.tick += 1;
      for (const car of this.cars) {
        const numLaps = car.run.laps.length;
        car.run.add();
        if (car.run.laps.length > numLaps) car.laps.push(car.run.laps.at(-1));
        car.before = car.pose;
        car.pose = this.pose(car);
        this.leaveMarks(car);
      }
    }
    this.swarm?.advance();
    if (!world) this.tick += 1;
    this.onTick?.();
  }

  /** Trail, skid marks, dust and sparks. */
  leaveMarks(car) {
    const { pose } = car;
    const { read } = this.world;
    car.trail.add(pose.x, pose.y, pose.speed);
    if (car.isGhost) return;
    const slip =
      pose.speed > 6 ? Math.abs(Math.atan2(pose.left - 1.2 * read.yaw_radps(car.index), Math.abs(pose.forward))) : 0;
    const isOff = read.offTrack(car.index) !== 0;
    const isSkidding = !isOff && (slip > 0.13 || (pose.brake > 0.86 && pose.speed > 8));
    const [cos, sin] = [Math.cos(pose.yaw), Math.sin(pose.yaw)];
    const wheels = [0.8, -0.8].map((side) => [pose.x - 1.3 * cos - side * sin, pose.y - 1.3 * sin + side * cos]);
    if (isSkidding && car.lastWheels) {
      wheels.forEach(([x, y], k) => this.picture.addSkid(...car.lastWheels[k], x, y));
      if (slip > 0.22 && this.tick % 3 === 0)
        this.particles.add('smoke', ...wheels[this.tick % 2], 0.2 * pose.vx, 0.2 * pose.vy);
    }
    car.lastWheels = isSkidding ? wheels : null;
    if (isOff && pose.speed > 4 && this.tick % 2 === 0)
      this.particles.add('dust', ...wheels[(this.tick >> 1) % 2], 0.25 * pose.vx, 0.25 * pose.vy);
    if (read.wallContact(car.index) && pose.speed > 3) {
      for (let k = 0; k < 4; k += 1)
        this.particles.add('spark', pose.x + cos, pose.y + sin, 0.5 * pose.vx, 0.5 * pose.vy);
      this.onWall?.(car, pose.speed);
    }
  }

  frame(now) {
    const seconds = Math.min(MAX_FRAME_S, (now - this.last) / 1000);
    this.frames.push(now - this.last);
    this.last = now;
    if (!this.track || !this.isShown) return;
    const began = performance.now();
    if (!this.paused && (this.world || this.swarm)) {
      this.debt += seconds * this.pace;
      while (this.debt >= this.tickSeconds && !this.paused) {
        this.debt -= this.tickSeconds;
        this.advance();
      }
      this.particles.update(seconds * this.pace);
    }
    this.ground.watch(this.frames, this.camera.mode === 'chase');
    this.draw(this.paused ? 1 : this.debt / this.tickSeconds, seconds);
    this.works.push(performance.now() - began);
    if (this.works.length > 2000) this.works.shift();
    if (this.frames.length > 2000) this.frames.shift();
  }

  /** The pose between the last two ticks. */
  between(car, fraction) {
    const { before, pose } = car;
    let turn = pose.yaw - before.yaw;
    turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI));
    if (Math.hypot(pose.x - before.x, pose.y - before.y) > 10) return pose;
    return {
      ...pose,
      x: before.x + fraction * (pose.x - before.x),
      y: before.y + fraction * (pose.y - before.y),
      yaw: before.yaw + fraction * turn,
    };
  }

  draw(fraction, seconds) {
    const { context, camera, dpr } = this;
    const poses = this.cars.map((car) => this.between(car, fraction));
    const target = poses[this.focus] || this.swarm?.target() || null;
    camera.update(this.track, target, seconds);
    this.picture.setLine(this.showLine);
    this.ground.draw(context, this.picture, camera);
    for (const car of this.cars) {
      if (this.bySpeed || !(car.isGhost || car.isRival))
        car.trail.draw(context, camera, car.colour, this.engine.topSpeed, this.bySpeed, dpr);
    }
    this.swarm?.draw(context, camera, fraction, drawSwarm);
    if (this.showRays && this.world && poses[this.focus]) {
      const count = this.world.numObservations ?? this.engine.description.num_observations;
      const obs = this.world.obs.subarray(this.focus * count, (this.focus + 1) * count);
      drawRays(context, camera, this.cars[this.focus].pose, obs, this.engine.description.rays, dpr);
    }
    this.onDraw?.(context, camera, poses);
    this.particles.draw(context, camera);
    this.drawCars(poses);
    if (this.showLabels && this.cars.length > 1) {
      for (const index of this.cars.keys()) {
        const [me, other] = [poses[this.focus], poses[index]];
        const isNear = me && Math.hypot(me.x - other.x, me.y - other.y) < GHOST_NEAR_M;
        if (index !== this.focus && !isNear && !this.cars[index].isGone && camera.sees(other.x, other.y)) {
          drawLabel(context, camera, poses[index], this.cars[index].name, this.cars[index].colour, dpr);
        }
      }
    }
    this.drawMinimap(poses);
  }

  /** The cars, that in focus on top of the others; first those under a bridge, then its deck. */
  drawCars(poses) {
    const { context, camera } = this;
    const order = this.cars.map((_, index) => index).sort((a, b) => (a === this.focus) - (b === this.focus));
    const { bridges } = this.picture;
    const isUnder = (index) => bridges.some((one) => one.under.has(this.world.read.node(index)));
    const below = bridges.length ? order.filter(isUnder) : [];
    for (const index of below) this.drawOne(index, poses);
    if (below.length) drawOver(context, camera, bridges);
    for (const index of order) if (!below.includes(index)) this.drawOne(index, poses);
  }

  drawOne(index, poses) {
    const { camera } = this;
    const [car, pose, focused] = [this.cars[index], poses[index], poses[this.focus]];
    if (car.isGone || !camera.sees(pose.x, pose.y)) return;
    let alpha = car.isGhost ? 0.62 : 1;
    if (car.isGhost && focused) {
      const apart = Math.hypot(pose.x - focused.x, pose.y - focused.y);
      alpha *= 0.25 + 0.75 * Math.min(1, apart / GHOST_NEAR_M);
    }
    drawCar(this.context, camera, pose, car.colour, alpha, this.carSize);
  }

  drawMinimap(poses) {
    if (!this.mapLayer || !this.minimap?.width) return;
    const context = this.minimap.getContext('2d');
    context.clearRect(0, 0, this.minimap.width, this.minimap.height);
    context.drawImage(this.mapLayer, 0, 0);
    this.swarm?.drawDots(context, this.mapProject, this.dpr);
    poses.forEach((pose, index) => {
      if (this.cars[index].isGone) return;
      const [x, y] = this.mapProject(pose.x, pose.y);
      context.fillStyle = this.cars[index].colour;
      context.strokeStyle = COLOURS.background;
      context.lineWidth = 1.5 * this.dpr;
      context.beginPath();
      context.arc(x, y, (index === this.focus ? 5 : 4) * this.dpr, 0, 7);
      context.fill();
      context.stroke();
    });
  }

  best(car) {
    return bestLap(car.laps);
  }
}
