// Drivers that learned in this tab: kept in this browser, the best one of each track, and offered like all others.

import { keepPolicy } from './drivers.js';
import { fromText, toText } from './replay.js';
import { recall, remember } from './storage.js';

const KEY = 'trained';
const MAX_KEPT = 12;
const NAME = 'AI trained here';

const asText = (array) => toText(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));

/** Keep a driver: its track, its policy file and what a model file needs; the oldest of too many is forgotten. */
export function keepTrained({ policy, weights, statistics, ...about }) {
  const others = recall(KEY, []).filter((one) => one.track !== about.track);
  const texts = { policy: toText(new Uint8Array(policy)), weights: asText(weights), statistics: asText(statistics) };
  remember(KEY, [{ ...about, ...texts }, ...others].slice(0, MAX_KEPT));
}

/** The driver that learned on a track in this browser; null if there is none. */
export function recallTrained(track, physics) {
  const kept = recall(KEY, []).find((one) => one.track === track && one.physics === physics);
  if (!kept) return null;
  return {
    ...kept,
    weights: new Float32Array(fromText(kept.weights).buffer),
    statistics: new Float64Array(fromText(kept.statistics).buffer),
  };
}

/** Offer the drivers of earlier visits on their tracks. */
export function offerTrained(app) {
  for (const { track, step, physics, policy } of recall(KEY, []))
    if (physics === app.engine.physics) app.further.set(track, [trainedDriver(track, step, fromText(policy).buffer)]);
}

/** A driver of the list, of a policy file. */
export function trainedDriver(track, step, buffer) {
  const url = policyUrl(track, step);
  keepPolicy(url, buffer);
  return { id: `trained:${track}`, name: NAME, kind: 'model', track, policy: url, replay: null };
}

/** The name under which the page knows the policy after so many decisions. */
export const policyUrl = (track, step) => `trained:${track}@${step}`;
