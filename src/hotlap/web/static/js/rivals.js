// A race against other cars that meet: the field on the grid, positions and gaps, contacts, the finish.

import { CASUAL_VERSION, CasualPilot } from './casual_pilot.js';
import { driverColour, KINDS } from './colours.js';
import { loadDriver } from './drivers.js';
import { RacePilot, RaceWorld, STATUS } from './race_world.js';
import { recall } from './storage.js';

export const MAX_RIVALS = 11;
export const MIX = 'mix';
const SLOWEST_THROTTLE = 0.86; // of the last of several cars of one driver: they spread out
const GRIP_SHARES = [0.78, 0.68]; // of the first and the last casual driver
const CONTACT_MPS = 0.5;
const SAME_CONTACT_TICKS = 30; // cars that touch again sooner have not parted
const QUIET_TICKS = 75; // between two words about contacts
const RIVAL_KINDS = ['rival', 'champion', 'generalist', 'model'];
const PARTS_TICKS = 240; // driven at once after one's own finish

/** Whom one can race: drivers with a policy for any place on the road, and the casual driver. */
export function listRivals({ drivers }) {
  const taught = drivers.filter((one) => one.policy && RIVAL_KINDS.includes(one.kind));
  const casual = { id: 'casual', kind: 'casual', name: 'Casual drivers' };
  const mix = taught.length ? [{ id: MIX, kind: MIX, name: 'A mixed field' }] : [];
  return [casual, ...mix, ...taught];
}

export class Rivals {
  /** `given`: laps and grid of a race that was driven before; else what the person chose last. */
  constructor(app, given = {}) {
    this.app = app;
    this.numRivals = Math.min(MAX_RIVALS, recall('rivals', 5));
    this.kind = recall('rival-kind', 'casual');
    this.laps = given.laps ?? recall('rival-laps', 3);
    this.place = recall('rival-place', 'back');
    this.grid = given.grid ?? null;
  }

  /** The drivers of the field, the person's own car first; one driver's cars are neighbours. */
  async drivers() {
    const list = listRivals(this.app);
    const chosen = list.find((one) => one.id === this.kind) || list[0];
    this.kind = chosen.id;
    if (chosen.id !== MIX) return Array.from({ length: this.numRivals }, () => chosen);
    const taught = list.filter((one) => one.policy).slice(0, 2);
    const kinds = [list[0], ...taught];
    const field = Array.from({ length: this.numRivals }, (_, k) => kinds[k % kinds.length]);
    return field.sort((a, b) => kinds.indexOf(a) - kinds.indexOf(b));
  }

  /** Choose the field, and load what it needs. */
  async load() {
    this.field = await this.drivers();
    await this.loadFiles();
  }

  async loadFiles() {
    this.files = new Map();
    for (const driver of new Set(this.field)) if (driver.policy) this.files.set(driver.id, await loadDriver(driver));
  }

  /** By which a driver is known: its policy, or the version of the casual driver. */
  digestOf(id) {
    return id === 'casual' ? CASUAL_VERSION : (this.files.get(id)?.digest ?? 0);
  }

  /** The race so far as its replay: the person's inputs, and every car's time. */
  replay(actions) {
    const { app, field, world } = this;
    const groups = [...new Set(field)].map((driver) => ({
      id: driver.id,
      digest: this.digestOf(driver.id),
      count: field.filter((one) => one === driver).length,
    }));
    const times = world.slots.map((_, car) => world.entrant.race_time_s(car));
    const { road } = app.track;
    const version = app.engine.description.race;
    return { road, version, laps: this.laps, groups, slots: world.slots, times, actions };
  }

  /** Each car's place on the grid: the person's own where it was chosen, the fastest rivals in front. */
  slots() {
    if (this.grid) return this.grid;
    const count = this.field.length + 1;
    const own = { front: 0, middle: Math.floor(count / 2), back: count - 1 }[this.place];
    const free = Array.from({ length: count }, (_, slot) => slot).filter((slot) => slot !== own);
    const order = this.field.map((driver, k) => [driver.policy ? 0 : 1, k]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const slots = [own];
    order.forEach(([, k], n) => {
      slots[k + 1] = free[n];
    });
    return slots;
  }

  /** Put the field on the grid. */
  line(stage, human) {
    const entries = [human, ...this.field.map((driver, k) => this.entry(driver, k))];
    const slots = this.slots();
    stage.setCars(entries, 0, (engine, track, count) => new RaceWorld(engine, track, count, this.laps, slots));
    this.world = stage.world;
    this.contacts = entries.map(() => ({ all: 0, faults: 0, lastTick: -Infinity }));
    this.quietUntil = 0;
  }

  entry(driver, k) {
    const same = this.field.filter((one) => one === driver).length;
    const number = this.field.slice(0, k).filter((one) => one === driver).length;
    const first = this.field.indexOf(driver);
    const rank = same > 1 ? number / (same - 1) : 0;
    const single = driver.kind === 'casual' ? 'Casual' : driver.name;
    return {
      id: `${driver.id}-${number + 1}`,
      name: same > 1 ? `${single} ${number + 1}` : single,
      kind: driver.kind,
      isRival: true,
      colour: driver.kind === 'casual' ? KINDS.casual : driverColour(driver),
      makePilot: (world, car) => {
        if (driver.kind === 'casual')
          return new CasualPilot(world, car, GRIP_SHARES[0] + rank * (GRIP_SHARES[1] - GRIP_SHARES[0]));
        if (number) return { act() {} }; // the first of a driver's cars decides for all of them
        const limits = Array.from({ length: same }, (_, n) =>
          same > 1 ? 1 - ((1 - SLOWEST_THROTTLE) * n) / (same - 1) : 1,
        );
        return new RacePilot(world, this.files.get(driver.id).policy, first + 1, limits);
      },
    };
  }

  status(car) {
    return this.world.entrant.status(car);
  }

  position(car) {
    return this.world.entrant.position(car);
  }

  get isOwnEnd() {
    return this.status(0) !== STATUS.racing;
  }

  /** Count the tick's contacts; a word about the person's own, or null. */
  meet(tick) {
    const { entrant } = this.world;
    this.contacts.forEach((count, car) => {
      if (entrant.contact_mps(car) <= CONTACT_MPS) return;
      if (tick - count.lastTick > SAME_CONTACT_TICKS) {
        count.all += 1;
        if (entrant.at_fault(car)) count.faults += 1;
      }
      count.lastTick = tick;
    });
    if (entrant.contact_mps(0) <= CONTACT_MPS || tick < this.quietUntil) return null;
    this.quietUntil = tick + QUIET_TICKS;
    return entrant.at_fault(0) ? 'Contact: your fault' : 'Contact: not your fault';
  }

  /** The cars in the order of the race, with their gap to the one ahead (s) or how they are out. */
  order(cars) {
    const sorted = [...cars].sort((a, b) => this.position(a.index) - this.position(b.index));
    return sorted.map((car, k) => {
      const isOut = this.status(car.index) === STATUS.retired;
      return { car, position: k + 1, isOut, gap: k ? this.gap(car, sorted[k - 1]) : null };
    });
  }

  /** Seconds from one car to the one ahead: since that was where this is now. */
  gap(car, ahead) {
    const [mine, theirs] = [car.index, ahead.index].map((index) => this.world.entrant.race_time_s(index));
    if (Number.isFinite(mine) && Number.isFinite(theirs)) return mine - theirs;
    const there = ahead.run.secondsAt(Math.max(0, car.run.progress ?? 0));
    return there === null || !car.run.progress ? null : car.run.tick / this.app.engine.ticksPerSecond - there;
  }

  lap(car) {
    return Math.min(this.laps, Math.max(1, this.world.entrant.laps_done(car) + 1));
  }

  /** Drive on until all cars are classified, a part at a time so that the page stays awake. */
  async complete(stage) {
    while (!this.world.isOver) {
      for (let k = 0; k < PARTS_TICKS && !this.world.isOver; k += 1) {
        stage.advance();
        this.meet(stage.tick);
      }
      await new Promise((done) => setTimeout(done));
    }
  }
}
