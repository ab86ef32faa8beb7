// Ghosts: who can be raced on a track, and the car that drives the whole race of one.

import { driverColour, KINDS, MEDALS } from './colours.js';
import { defaultDriver, loadDriver, makeEntry } from './drivers.js';
import { PolicyPilot } from './engine.js';
import { lapText } from './format.js';
import { listRungs, MEDAL_GHOST, medalName } from './race_ladder.js';
import { decodeReplay, fromText, MAX_TICKS, recordRun, ReplayPilot } from './replay.js';
import { bestOn } from './storage.js';

export const NO_GHOST = 'none';
export const OWN_BEST = 'best';
export const FRIEND = 'friend';
export const A_FRIEND = 'A friend'; // whose name is not known
export const YOU = 'You';
export const NOT_HERE = 'The driver of this link is not here. Another one drives.';

const WORDS = {
  champion: 'the champion',
  generalist: 'the AI',
  model: 'the AI',
  casual: 'the casual driver',
  optimal: 'the optimal driver',
};

const OWN_WORDS = { [OWN_BEST]: 'your own best', [A_FRIEND]: 'your friend', [YOU]: 'yourself' };

/** A ghost in a sentence: the casual driver, the gold time, your own best, Ada. */
export function ghostWords({ id, kind, name }) {
  if (kind === 'medal') return `the ${name.toLowerCase()}`;
  return WORDS[kind] || OWN_WORDS[id] || OWN_WORDS[name] || name;
}

/** Who can be raced on the track: the ladder first, then the others. */
export function listGhosts({ app, friend }) {
  const { drivers, track, engine } = app;
  const list = [];
  if (friend) list.push({ id: FRIEND, name: `${friend.name}, ${lapText(friend.replay.lapTime)}` });
  const rungs = listRungs(app);
  for (const rung of rungs)
    list.push({ id: rung.id, name: rung.time === null ? rung.name : `${rung.name}, ${lapText(rung.time)}` });
  for (const driver of drivers)
    if (!rungs.some((rung) => rung.id === driver.id)) list.push({ id: driver.id, name: driver.name });
  const own = bestOn(track.road, engine.physics);
  if (own?.replay) list.push({ id: OWN_BEST, name: `Your best, ${lapText(own.time)}` });
  list.push({ id: NO_GHOST, name: 'Nobody' });
  return list;
}

/** The ghost's car and its whole drive, known beforehand so that the delta is exact at every metre. */
export async function makeGhost(race, id) {
  const { track, engine, drivers } = race.app;
  if (id === NO_GHOST) return null;
  if (id.startsWith(MEDAL_GHOST)) return makeMedalGhost(race, id.slice(MEDAL_GHOST.length));
  if (id === FRIEND || id === OWN_BEST) {
    const replay =
      id === FRIEND ? race.friend.replay : await decodeReplay(fromText(bestOn(track.road, engine.physics).replay));
    const name = id === FRIEND ? race.friend.name : 'Your best';
    const makePilot = () => new ReplayPilot(replay);
    const run = recordRun(engine, track, makePilot, race.numLaps, MAX_TICKS / 4);
    return { id, name, kind: 'replay', colour: KINDS.replay, makePilot, isGhost: true, run };
  }
  const driver = drivers.find((one) => one.id === id);
  return { ...(await makeEntry(driver, track)), isGhost: true, run: await recordDriver(race, driver) };
}

async function recordDriver(race, driver, poses = null) {
  const { track, engine } = race.app;
  const file = await loadDriver(driver);
  const makePilot = (world) => (file.policy ? new PolicyPilot(world, file.policy) : new ReplayPilot(file.replay));
  return recordRun(engine, track, makePilot, race.numLaps, MAX_TICKS / 4, poses);
}

/** A lap in exactly a medal's time: that of the best driver here, played more slowly. */
async function makeMedalGhost(race, medal) {
  const { track, drivers } = race.app;
  const poses = [];
  const base = await recordDriver(race, defaultDriver(drivers), poses);
  const factor = track.medals_sec[medal] / base.best.time;
  const slow = (list) => list.map((one) => ({ ...one }));
  const laps = slow(base.laps).map((lap) => ({ ...lap, time: lap.time * factor, tick: lap.tick * factor }));
  const run = {
    laps,
    best: laps[base.laps.indexOf(base.best)],
    sectors: slow(base.sectors).map((sector) => ({ ...sector, seconds: sector.seconds * factor })),
    secondsAt: (metre) => {
      const seconds = base.secondsAt(metre);
      return seconds === null ? null : seconds * factor;
    },
  };
  return {
    id: MEDAL_GHOST + medal,
    name: medalName(medal),
    kind: 'medal',
    colour: MEDALS[medal] || driverColour({ id: medal, kind: 'model' }),
    isGhost: true,
    run,
    makePilot: () => ({ act() {} }),
    // Where it is after a tick: the stage asks for this instead of the simulator's car.
    poseAt: (tick) => poses[Math.min(poses.length - 1, Math.round(tick / factor))],
  };
}
