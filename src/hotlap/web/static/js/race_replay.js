// Replays of races against rivals: who was on the grid, the person's inputs, and every car's time. The rivals drive
// again by themselves, to the bit; docs/web-api.md describes the bytes.

import { KeyPilot } from './key_pilot.js';
import { packInputs, packKeys } from './link_coding.js';
import { join, unpackBody } from './replay.js';
import { CODING, hex, MAX_TICKS, packRuns, unhex } from './replay_inputs.js';

const MAGIC = 'HRC1';
const HEAD_BYTES = 30;
const MAX_CARS = 12;
const GROUP = /^([A-Za-z0-9][\w.:@-]{0,150})(?:#([0-9a-f]{8}))?\*([1-9]\d?)$/;

/** Whether these bytes are a race, and not a lap. */
export const isRace = (bytes) => String.fromCharCode(...bytes.subarray(0, 4)) === MAGIC;

const groupText = ({ id, digest, count }) =>
  `${id}${digest ? `#${digest.toString(16).padStart(8, '0')}` : ''}*${count}`;

/** `race`: road, version, laps, groups ({id, digest, count}), slots, times (NaN: no finish), actions (the person's). */
export async function encodeRace(race) {
  return withHead(race, CODING.runs, await packRuns(race.actions));
}

/** The same for a link, in fewer bytes: by `keys`, where only keys were pressed. */
export function encodeRaceForLink(race, keys) {
  return keys ? withHead(race, CODING.keys, packKeys(keys)) : withHead(race, CODING.inputs, packInputs(race.actions));
}

function withHead({ road, version, laps, groups, slots, times, actions }, coding, body) {
  const field = new TextEncoder().encode(groups.map(groupText).join(','));
  const head = new Uint8Array(HEAD_BYTES);
  const view = new DataView(head.buffer);
  const [edition, digest] = version.split('-');
  head.set([...MAGIC].map((c) => c.charCodeAt(0)));
  head[4] = coding;
  head[5] = slots.length;
  view.setUint16(6, Number(edition), true);
  head.set(unhex(digest), 8);
  head.set(unhex(road), 14);
  view.setUint32(22, actions.length / 3, true);
  view.setUint16(26, laps, true);
  view.setUint16(28, field.length, true);
  const seconds = new DataView(new ArrayBuffer(4 * times.length));
  times.forEach((time, car) => seconds.setFloat32(4 * car, time, true));
  return join(head, field, Uint8Array.from(slots), new Uint8Array(seconds.buffer), body);
}

export async function decodeRace(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < HEAD_BYTES || !isRace(bytes)) throw new Error('This is not a race. Was the link cut off?');
  const [coding, numCars, numTicks] = [bytes[4], bytes[5], view.getUint32(22, true)];
  const slotsAt = HEAD_BYTES + view.getUint16(28, true);
  const bodyAt = slotsAt + 5 * numCars;
  const isKnown = Object.values(CODING).includes(coding) && numCars >= 2 && numCars <= MAX_CARS;
  if (!isKnown || numTicks < 1 || numTicks > MAX_TICKS || bytes.length < bodyAt) {
    throw new Error('This race is damaged or of a newer version.');
  }
  const groups = new TextDecoder()
    .decode(bytes.subarray(HEAD_BYTES, slotsAt))
    .split(',')
    .map((text) => GROUP.exec(text));
  const slots = [...bytes.subarray(slotsAt, slotsAt + numCars)];
  const isWhole = groups.every(Boolean) && groups.reduce((sum, one) => sum + Number(one[3]), 1) === numCars;
  if (!isWhole || [...slots].sort((a, b) => a - b).some((slot, k) => slot !== k)) {
    throw new Error('The list of rivals of this race is damaged.');
  }
  return {
    version: `${view.getUint16(6, true)}-${hex(bytes.subarray(8, 14))}`,
    road: hex(bytes.subarray(14, 22)),
    laps: view.getUint16(26, true),
    groups: groups.map(([, id, digest, count]) => ({ id, digest: parseInt(digest ?? '0', 16), count: Number(count) })),
    slots,
    times: slots.map((_, car) => view.getFloat32(slotsAt + numCars + 4 * car, true)),
    numTicks,
    ...(await unpackBody(bytes.subarray(bodyAt), coding, numTicks)),
  };
}

/** The person's car in a race that is driven again; after the last input it rolls, and nobody meets it. */
export class PersonPilot {
  constructor(race, engine) {
    this.race = race;
    this.keys = race.actions ? null : new KeyPilot(race.keys, engine);
    this.begin();
  }

  begin() {
    this.tick = 0;
    this.keys?.begin();
  }

  act(world, car) {
    if (this.tick >= this.race.numTicks) world.setAction(car, 0, 0, 0);
    else if (this.keys) this.keys.act(world, car);
    else world.setAction(car, ...this.race.actions.subarray(3 * this.tick, 3 * this.tick + 3));
    this.tick += 1;
  }
}
