// Drivers of the list: their files, loaded once, and pilots made of them.

import { driverColour } from './colours.js';
import { crc32 } from './digests.js';
import { parsePolicy, PolicyPilot } from './engine.js';
import { decodeReplay, ReplayPilot } from './replay.js';
import { fetchBytes } from './server.js';

const files = new Map();

/** Keep a policy file that came another way than from its address. */
export function keepPolicy(url, buffer) {
  files.set(url, Promise.resolve(readPolicy(buffer)));
}

export function dropPolicy(url) {
  files.delete(url);
}

/** A policy with the digest by which races know it. */
const readPolicy = (buffer) => ({ policy: parsePolicy(buffer), digest: crc32(new Uint8Array(buffer)) });

/** The driver's policy with its digest, or its replay. */
export function loadDriver(driver) {
  const url = driver.policy || driver.replay;
  if (!files.has(url)) {
    const file = fetchBytes(url).then(async (buffer) =>
      driver.policy ? readPolicy(buffer) : { replay: await decodeReplay(new Uint8Array(buffer)) },
    );
    file.catch(() => files.delete(url));
    files.set(url, file);
  }
  return files.get(url);
}

/** What the stage needs of a driver: how it is called and drawn, and a maker of its pilot. */
export async function makeEntry(driver, track) {
  const file = await loadDriver(driver);
  if (file.replay && file.replay.road !== track.road) throw new Error(`${driver.name} was recorded on another road.`);
  return {
    id: driver.id,
    name: driver.name,
    kind: driver.kind,
    colour: driverColour(driver),
    makePilot: (world, car) =>
      file.policy ? new PolicyPilot(world, file.policy, car, 1) : new ReplayPilot(file.replay),
  };
}

/** Take a driver that cannot drive here off the list; false if it is not on it. */
export function dropDriver(app, id) {
  const others = app.drivers.filter((one) => one.id !== id);
  const isThere = others.length < app.drivers.length;
  app.drivers = others;
  return isThere;
}

/** The driver that is shown first: the champion, then a generalist, then the fastest that ships. */
export function defaultDriver(drivers) {
  const order = ['champion', 'generalist', 'optimal', 'model', 'casual'];
  return order.map((kind) => drivers.find((one) => one.kind === kind)).find(Boolean) || drivers[0] || null;
}
