// The course of a race against rivals: the grid, every tick, the finish.

import { showStart } from './race_panels.js';
import { MAX_TICKS } from './replay_inputs.js';
import { STATUS } from './race_world.js';
import { showClassification, showRivalOptions } from './rivals_panels.js';

const TOWER_TICKS = 6; // between two looks at the order

/** Load the field and put it on the grid; a time trial where it cannot be loaded. */
export async function prepareRivals(race) {
  const { app } = race;
  const { track } = app;
  race.ghost = null;
  try {
    await race.rivals.load();
  } catch (error) {
    app.say(error.message);
    race.format = 'ghost';
    await race.prepare();
    return;
  }
  if (app.view !== 'race' || track !== app.track) return;
  showRivalOptions(race);
  race.line();
  race.setPhase('idle');
  app.announce(`Race on ${track.name}`);
  showStart(race);
}

/** A tick of the race: who is out, contacts, the order, the end. */
export function tickRivals(race) {
  const { stage } = race.app;
  const { rivals } = race;
  for (const car of stage.cars) car.isGone = rivals.status(car.index) !== STATUS.racing;
  if (race.phase !== 'racing') return;
  const word = rivals.meet(stage.tick);
  if (word) race.flash(word);
  if (stage.tick % TOWER_TICKS === 0) race.tower.show(rivals, stage.cars);
  if (rivals.isOwnEnd) finishRivals(race);
}

/** One's own race is over: the others drive theirs to the end, and all are classified. */
async function finishRivals(race) {
  const { stage, sound } = race.app;
  race.setPhase('finished');
  stage.paused = true;
  sound.silence();
  sound.beep(1175, 0.5);
  const { world } = stage;
  const { inputs, allKeys: keys } = race.pilot;
  const [actions, numTicks] = [Float32Array.from(inputs), inputs.length / 3];
  await race.rivals.complete(stage);
  if (race.app.view !== 'race' || stage.world !== world || race.phase !== 'finished') return;
  race.tower.hide();
  const replay =
    stage.tick <= MAX_TICKS ? { ...race.rivals.replay(actions), numTicks, keys: keys?.slice(0, numTicks) } : null;
  race.app.announce(showClassification(race, stage.cars, replay));
}
