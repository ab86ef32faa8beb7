// The racer's PPO in this tab: learn.wasm over one part of the cars or both. Every size comes from learn.json.

import { packRecord, WasmMemory } from './wasm_memory.js';

const ALL_FINE = -1;

/**
 * Learns on a road. `parts` are the parts of the cars that are computed here. `exchange` sends an array of the own part
 * to whoever has the other one and resolves to theirs; it is not called where both are computed here.
 */
export class TabLearner extends WasmMemory {
  constructor({ module, learn, sim, track, seed, parts, exchange }) {
    super(module, 'the learner');
    Object.assign(this, { learn, sim, parts, exchange, rollouts: 0 });
    const takeAll = (sizes) =>
      Object.fromEntries(Object.entries(sizes).map(([name, bytes]) => [name, this.take(bytes)]));
    const { part_bytes: partBytes, num_parts: numParts } = learn;
    this.shared = {
      ...takeAll(learn.learner_bytes),
      all_tallies: this.take(numParts * partBytes.tallies),
      all_gradients: this.take(numParts * partBytes.gradients),
      recipe: this.put(packRecord(learn.records.recipe, { ...learn.recipe, seed })),
      cars: this.put(packRecord(sim.records.car, sim.car)),
      rules: this.put(packRecord(sim.records.rules, learn.rules)),
      tracks: this.put(track.records.tracks),
      num_tracks: 1,
      nodes: this.put(track.records.nodes),
      num_nodes: track.numNodes,
      portals: this.put(track.records.portals),
      num_portals: track.numPortals,
    };
    this.places = new Map(
      parts.map((index) => [
        index,
        {
          ...takeAll(learn.batch_bytes),
          ...takeAll(partBytes),
          // The rows of all parts lie one after the other, so that what arrives from elsewhere needs no further copy.
          tallies: this.shared.all_tallies + index * partBytes.tallies,
          gradients: this.shared.all_gradients + index * partBytes.gradients,
          part_index: index,
        },
      ]),
    );
    this.call('begin_learner');
    this.onParts('begin_part');
  }

  call(name, more = {}) {
    const values = { ...this.shared, ...more };
    return this.instance.exports[name](...this.learn.functions[name].map((key) => values[key]));
  }

  onParts(name, more = {}) {
    for (const place of this.places.values()) {
      const answer = this.call(name, { ...place, ...more });
      if (name === 'collect' && answer !== ALL_FINE) throw new Error('Its weights are not finite any more. Try again.');
    }
  }

  /** Give the own row of an array to whoever has the other part, and take theirs. */
  async swap(name) {
    if (this.parts.length === this.learn.num_parts) return;
    const bytes = this.learn.part_bytes[name];
    const row = (index) => new Uint8Array(this.memory.buffer, this.shared[`all_${name}`] + index * bytes, bytes);
    const [own] = this.parts;
    const theirs = await this.exchange(row(own).slice());
    row(1 - own).set(theirs);
  }

  /** One rollout and its update; of the first rollout only the statistics are used. */
  async advance() {
    const { learn } = this;
    this.onParts('collect');
    await this.swap('tallies');
    this.call('merge');
    this.rollouts += 1;
    if (this.rollouts > 1) {
      this.onParts('judge');
      await this.swap('tallies');
      this.onParts('normalize');
      for (let epoch = 0; epoch < learn.num_epochs; epoch += 1) await this.runEpoch(epoch);
    }
    this.call('finish');
  }

  async runEpoch(epoch) {
    const { num_batches: numBatches, num_epochs: numEpochs } = this.learn;
    this.onParts('shuffle', { epoch });
    for (let index = 0; index < numBatches; index += 1) {
      this.onParts('differentiate', { batch_index: index });
      await this.swap('gradients');
      this.call('descend', { is_last_epoch: Number(epoch === numEpochs - 1) });
    }
  }

  get decisions() {
    return this.rollouts * this.learn.decisions_per_rollout;
  }

  /** A copy of what a driver is made of. */
  snapshot() {
    const copy = (Kind, name) =>
      new Kind(this.memory.buffer.slice(this.shared[name], this.shared[name] + this.learn.learner_bytes[name]));
    return {
      weights: copy(Float32Array, 'weights'),
      factors: copy(Float32Array, 'factors'),
      statistics: copy(Float64Array, 'statistics'),
    };
  }
}
