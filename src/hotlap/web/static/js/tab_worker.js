// A worker that learns. The first one drives a lap after every update and reports; the second only computes its part.

import { Engine, PolicyPilot, World } from './engine.js';
import { TabLearner } from './tab_learner.js';
import { trainedPolicy } from './trained_policy.js';

const NUM_LAPS = 2; // one from standing, one flying
const GATE_S = 15; // a car that needs longer to the next gate is not driven further

let paused = false;
let wake = null;

/** What arrives from the other worker, in order. */
class Mailbox {
  constructor(port) {
    this.port = port;
    this.letters = [];
    this.waiting = null;
    port.onmessage = ({ data }) => {
      if (this.waiting) {
        this.waiting(data);
        this.waiting = null;
      } else this.letters.push(data);
    };
  }

  /** Send bytes and wait for theirs. */
  exchange(bytes) {
    this.port.postMessage(bytes, [bytes.buffer]);
    if (this.letters.length) return Promise.resolve(this.letters.shift());
    return new Promise((done) => {
      this.waiting = done;
    });
  }
}

/** Drives laps from the line with what was learned up to now. */
class Examiner {
  constructor(engine, track) {
    this.world = new World(engine, track, 1);
    this.pilot = null;
  }

  /** The laps that are driven: {time, clean}. */
  drive(policy) {
    const { world } = this;
    if (this.pilot) world.f32.set(policy.numbers, this.pilot.values.numbers >> 2);
    else this.pilot = new PolicyPilot(world, policy);
    world.reset();
    this.pilot.begin();
    const laps = [];
    const { read } = world;
    for (let [gate, since] = [0, 0]; laps.length < NUM_LAPS && since < GATE_S * world.engine.ticksPerSecond;) {
      this.pilot.act();
      world.step();
      since = read.gate(0) === gate ? since + 1 : 0;
      gate = read.gate(0);
      if (Number.isFinite(read.lapTime(0))) laps.push({ time: read.lapTime(0), clean: Boolean(read.lapClean(0)) });
    }
    return laps;
  }
}

/** Let messages in. */
const turn = () => new Promise((done) => setTimeout(done, 0));

async function learnOn(order) {
  const { sim, learn, track, parts, port, maxRollouts } = order;
  const mailbox = port ? new Mailbox(port) : null;
  const learner = new TabLearner({ ...order, module: order.learnModule, exchange: (bytes) => mailbox.exchange(bytes) });
  const isFirst = parts.includes(0);
  const examiner = isFirst ? new Examiner(new Engine(order.simModule, sim), track) : null;
  let seconds = 0;
  while (learner.rollouts < maxRollouts) {
    if (isFirst && paused)
      await new Promise((done) => {
        wake = done;
      });
    const begun = performance.now();
    await learner.advance();
    if (isFirst) {
      const snapshot = learner.snapshot();
      const policy = trainedPolicy(learn, snapshot, { physics: sim.physics, step: learner.decisions, track: track.id });
      const laps = examiner.drive(policy);
      seconds += (performance.now() - begun) / 1000;
      const report = { decisions: learner.decisions, rollouts: learner.rollouts, seconds, laps, policy, ...snapshot };
      postMessage({ report });
    }
    await turn();
  }
  if (isFirst) postMessage({ finished: true });
}

const ORDERS = {
  begin: (order) => learnOn(order).catch((error) => postMessage({ error: error.message })),
  pause: () => {
    paused = true;
  },
  resume: () => {
    paused = false;
    wake?.();
    wake = null;
  },
};

addEventListener('message', ({ data }) => ORDERS[data.kind](data));
