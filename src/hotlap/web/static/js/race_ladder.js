// The ladder of a track: opponents one after the other, each a little faster. Whoever beats one is offered the next.

import { bestOn, recall, remember } from './storage.js';

const MEDALS = ['bronze', 'silver', 'gold'];
export const MEDAL_GHOST = 'medal:';

/** The opponents from the slowest to the fastest: id, name, and the lap to beat (s) where it is known. */
export function listRungs({ track, drivers }) {
  const rungs = [];
  const add = (kind, name) => {
    const driver = drivers.find((one) => one.kind === kind);
    if (driver) rungs.push({ id: driver.id, name: name || driver.name, time: null });
    return Boolean(driver);
  };
  add('casual');
  for (const medal of MEDALS) {
    const time = track.medals_sec?.[medal];
    if (time && drivers.length) rungs.push({ id: MEDAL_GHOST + medal, name: medalName(medal), medal, time });
  }
  if (!add('champion')) add('generalist');
  add('optimal');
  return rungs;
}

export const medalName = (medal) => `${medal[0].toUpperCase()}${medal.slice(1)} time`;

const key = ({ track, engine }) => `beaten.${engine.physics}.${track.road}`;

/** How many rungs are behind the visitor: beating one counts for all the slower ones. */
export function numBeaten(app) {
  const beaten = recall(key(app), []);
  const own = bestOn(app.track.road, app.engine.physics);
  const isBeaten = (rung) => beaten.includes(rung.id) || (own?.clean && rung.time !== null && own.time <= rung.time);
  return listRungs(app).findLastIndex(isBeaten) + 1;
}

/** The opponent that comes next, or null where all are beaten. */
export function nextRung(app) {
  return listRungs(app)[numBeaten(app)] ?? null;
}

const laps = new Map(); // of opponents that drove for a race here, by track, number of laps and id

const lapKey = ({ app, numLaps }, id) => `${app.track.road}:${numLaps}:${id}`;

/** Remember the lap of the ghost that drives against the visitor now. */
export function noteLap(race) {
  const time = race.ghost?.run.best?.time;
  if (time) laps.set(lapKey(race, race.ghost.id), time);
}

/** The lap to beat of an opponent (s): a medal's time, or what it drove here; null while that is not known. */
export const lapOf = (race, rung) => rung.time ?? laps.get(lapKey(race, rung.id)) ?? null;

/** Note that an opponent was beaten. */
export function noteBeaten(app, id) {
  const beaten = recall(key(app), []);
  if (!beaten.includes(id)) remember(key(app), [...beaten, id]);
}
