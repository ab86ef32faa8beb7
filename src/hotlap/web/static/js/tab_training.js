// Training in this tab: starts the workers, and is a run like the server's to the view that shows it.

import { dropPolicy, keepPolicy } from './drivers.js';
import { stepsText } from './format.js';
import { modelFile } from './model_file.js';
import { keepTrained, offerTrained, policyUrl, recallTrained, trainedDriver } from './trained_drivers.js';
import { policyBytes } from './trained_policy.js';

export const TAB_RUN = 'tab';
const CHECKPOINT_GROWTH = 1.2; // a checkpoint stays on the slider if it comes this much later than the one before
const SAVE_MS = 5000;
const NO_SIMD = 'This browser cannot learn: it has no WebAssembly with SIMD. Every current one has it.';

let loading = null;

/** The learner's module and its description, loaded when they are first wanted. */
export function loadLearner() {
  loading ??= Promise.all([
    fetch('learn.wasm')
      .then((answer) => answer.arrayBuffer())
      .then((bytes) => WebAssembly.compile(bytes))
      .catch(() => {
        throw new Error(NO_SIMD);
      }),
    fetch('learn.json').then((answer) => answer.json()),
  ]).then(([module, description]) => ({ module, description }));
  loading.catch(() => {
    loading = null;
  });
  return loading;
}

export class TabTraining {
  constructor(app) {
    this.app = app;
    this.run = null;
    this.workers = [];
    this.onchange = () => {};
    offerTrained(app);
  }

  /** Learn on a track from random weights; the run of before ends. `maxRollouts` is for tests. */
  async start(track, seed, { numWorkers = navigator.hardwareConcurrency > 1 ? 2 : 1, maxRollouts = Infinity } = {}) {
    const { engine } = this.app;
    const learner = await loadLearner();
    this.end();
    this.learn = learner.description;
    this.best = null;
    this.savedMs = -Infinity;
    this.run = {
      id: TAB_RUN,
      isHere: true,
      track: track.id,
      road: track.road,
      name: track.name,
      seed,
      state: 'running',
      step: 0,
      steps: 1,
      seconds: 0,
      firstLap: null,
      error: null,
      curves: { lap_time_sec: curve(), best_lap_time_sec: curve(), gap_to_optimal: curve() },
      checkpoints: [],
      best: null,
      optimal_lap_time_sec: track.optimal_lap_time_sec,
    };
    const channel = numWorkers > 1 ? new MessageChannel() : null;
    this.workers = Array.from({ length: numWorkers }, (_, index) => {
      const worker = new Worker(new URL('./tab_worker.js', import.meta.url), { type: 'module' });
      const port = channel ? [channel.port1, channel.port2][index] : null;
      const { id, records, numNodes, numPortals } = track;
      worker.onmessage = ({ data }) => this.hear(worker, data);
      worker.onerror = (event) => this.fail(worker, event.message || 'a worker could not start');
      const order = {
        kind: 'begin',
        learnModule: learner.module,
        simModule: engine.module,
        learn: learner.description,
        sim: engine.description,
        track: { id, records, numNodes, numPortals },
        seed,
        parts: channel ? [index] : [0, 1],
        port,
        maxRollouts,
      };
      worker.postMessage(order, port ? [port] : []);
      return worker;
    });
  }

  hear(worker, { report, error, finished }) {
    if (!this.workers.includes(worker)) return;
    if (report) this.note(report);
    if (error) this.fail(worker, error);
    if (finished) {
      this.end();
      this.run.state = 'finished';
      this.save();
      this.onchange();
    }
  }

  fail(worker, text) {
    if (!this.workers.includes(worker)) return;
    this.end();
    Object.assign(this.run, { state: 'failed', error: text });
    this.onchange();
  }

  /** What the run is after one more update. */
  note({ decisions, rollouts, seconds, laps, policy, weights, statistics }) {
    const { run } = this;
    const url = policyUrl(run.track, decisions);
    const buffer = policyBytes(policy);
    keepPolicy(url, buffer);
    const lap = Math.min(...laps.filter((one) => one.clean).map((one) => one.time));
    if (laps.length) run.firstLap ??= seconds;
    const isBest = lap < (this.best?.lap ?? Infinity);
    this.newest = { step: decisions, policy: buffer, weights, statistics, lap: Number.isFinite(lap) ? lap : null };
    if (isBest) {
      this.best = this.newest;
      run.best = { policy: url, lap_time_sec: lap };
    }
    if (Number.isFinite(lap)) add(run.curves.lap_time_sec, decisions, lap);
    if (this.best) add(run.curves.best_lap_time_sec, decisions, this.best.lap);
    if (this.best && run.optimal_lap_time_sec)
      add(run.curves.gap_to_optimal, decisions, this.best.lap / run.optimal_lap_time_sec - 1);
    this.addCheckpoint({ step: decisions, policy: url, isBest });
    Object.assign(run, { step: decisions, steps: decisions, seconds, rollouts });
    if (isBest) this.offer();
    this.onchange();
  }

  /** The newest moment is always the last on the slider; of those before, a few are kept. */
  addCheckpoint(checkpoint) {
    const { checkpoints } = this.run;
    const [before, last] = checkpoints.slice(-2);
    const isKept = !before || last?.isBest || last?.isRaced || last?.step >= CHECKPOINT_GROWTH * before.step;
    if (last && !isKept) dropPolicy(checkpoints.pop().policy);
    checkpoints.push(checkpoint);
  }

  /** Offer the best so far as a driver, and keep it in this browser. */
  offer() {
    const { app, run, best } = this;
    app.addDriver(trainedDriver(run.track, best.step, best.policy), run.track);
    if (performance.now() - this.savedMs > SAVE_MS) this.save();
  }

  save() {
    const { run, best } = this;
    if (!best) return;
    this.savedMs = performance.now();
    const { track, road, seed } = run;
    keepTrained({ track, road, seed, physics: this.app.engine.physics, ...best });
  }

  get isRunning() {
    return this.run?.state === 'running';
  }

  pause() {
    if (!this.isRunning) return;
    this.workers[0].postMessage({ kind: 'pause' });
    this.run.state = 'stopped';
    this.save();
    this.onchange();
  }

  resume() {
    if (this.run?.state !== 'stopped') return;
    this.workers[0].postMessage({ kind: 'resume' });
    this.run.state = 'running';
    this.onchange();
  }

  end() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
  }

  /** The status in one line. */
  get status() {
    const { state, step, seconds, error } = this.run;
    if (error) return `Failed: ${error}`;
    if (!step) return state === 'running' ? 'Learning: the first cars drive …' : 'Stopped before the first update';
    const word = { running: 'Learning', stopped: 'Stopped', finished: 'Finished' }[state];
    const rate = stepsText(Math.round(step / seconds));
    return `${word}: ${stepsText(step)} decisions in ${Math.round(seconds)} s, ${rate} a second`;
  }

  /** The laps in one line. */
  get laps() {
    const { run, best, newest } = this;
    if (run.firstLap === null) return 'No lap yet. After every update a car drives two laps from the line.';
    const first = `First lap after ${Math.round(run.firstLap)} s.`;
    if (!best) return `${first} No clean one yet.`;
    const gap = run.optimal_lap_time_sec ? best.lap / run.optimal_lap_time_sec - 1 : null;
    const behind = gap === null ? '' : `, ${(100 * gap).toFixed(1)} % over the optimum`;
    const now = newest.lap === null ? 'no clean lap' : `${newest.lap.toFixed(2)} s`;
    return `${first} Best ${best.lap.toFixed(2)} s${behind}; newest: ${now}.`;
  }

  /** Download the best driver of a track as a model file: that of this run, or of an earlier visit. */
  async download(track) {
    const { app } = this;
    this.save();
    const trained =
      this.run?.track === track && !this.best
        ? this.unbeaten
        : recallTrained(track, app.engine.physics) || this.unbeaten;
    if (!trained) throw new Error('Nothing has been learned yet.');
    const { description } = await loadLearner();
    const bytes = modelFile(description, trained, trained);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([bytes], { type: 'application/zip' }));
    link.download = `hotlap-${track.replace(/[^\w-]+/g, '-')}-${trained.step}.zip`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    return bytes;
  }

  /** The newest of a run that has no clean lap yet. */
  get unbeaten() {
    const { run, newest } = this;
    return newest ? { ...newest, track: run.track, road: run.road, seed: run.seed } : null;
  }
}

const curve = () => ({ step: [], value: [] });

function add({ step, value }, at, figure) {
  step.push(at);
  value.push(figure);
}
