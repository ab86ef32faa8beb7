// Ghosts: who can be raced on a track, and the car that drives the whole race of one.

import { KINDS } from './colours.js';
import { loadDriver, makeEntry } from './drivers.js';
import { PolicyPilot } from './engine.js';
import { lapText } from './format.js';
import { decodeReplay, fromText, MAX_TICKS, recordRun, ReplayPilot } from './replay.js';
import { bestOn } from './storage.js';

export const NO_GHOST = 'none';
export const OWN_BEST = 'best';
export const FRIEND = 'friend';

/** Who can be raced on the track. */
export function listGhosts({ app, friend }) {
  const { drivers, track, engine } = app;
  const list = [];
  if (friend) list.push({ id: FRIEND, name: `${friend.name}, ${lapText(friend.replay.lapTime)}` });
  for (const driver of drivers) list.push({ id: driver.id, name: driver.name, driver });
  const own = bestOn(track.road, engine.physics);
  if (own?.replay) list.push({ id: OWN_BEST, name: `Your best, ${lapText(own.time)}` });
  list.push({ id: NO_GHOST, name: 'Nobody' });
  return list;
}

/** The ghost's car and its whole drive, known beforehand so that the delta is exact at every metre. */
export async function makeGhost(race, id) {
  const { track, engine, drivers } = race.app;
  if (id === NO_GHOST) return null;
  let [entry, makePilot] = [null, null];
  if (id === FRIEND || id === OWN_BEST) {
    const replay =
      id === FRIEND ? race.friend.replay : await decodeReplay(fromText(bestOn(track.road, engine.physics).replay));
    makePilot = () => new ReplayPilot(replay);
    entry = {
      id,
      name: id === FRIEND ? race.friend.name : 'Your best',
      kind: 'replay',
      colour: KINDS.replay,
      makePilot,
    };
  } else {
    const driver = drivers.find((one) => one.id === id);
    const file = await loadDriver(driver);
    entry = await makeEntry(driver, track);
    makePilot = (world) => (file.policy ? new PolicyPilot(world, file.policy) : new ReplayPilot(file.replay));
  }
  const run = recordRun(engine, track, makePilot, race.numLaps, MAX_TICKS / 4);
  return { ...entry, isGhost: true, run };
}
