// Learn: a run live or recorded, its curves, its checkpoints on a slider, and 256 cars of the policy it has just now.

import { KINDS } from './colours.js';
import { loadDriver } from './drivers.js';
import { PolicyPilot } from './engine.js';
import { find, make, stepsText } from './format.js';
import { RECORDED, showButtons } from './learn_buttons.js';
import { drawCharts } from './learn_charts.js';
import { trainPanels } from './learn_form.js';
import { runName } from './server.js';
import { Swarm } from './swarm.js';
import { TAB_RUN, TabTraining } from './tab_training.js';
import { loadTrack } from './tracks.js';

const SWARM_CARS = 256;
const NAMES = { [RECORDED]: 'The recorded run', [TAB_RUN]: 'Training in this tab' };
const STATES = { stopped: 'Stopped', finished: 'Finished', failed: 'Failed' };
const UNTRAINED = `${SWARM_CARS} untrained cars, as they are before they learn`;
const READY = 'Getting ready';
const FILM_MS = 2500; // a checkpoint
const BEST_MS = 40000; // so long the best of a training in this tab drives before a better one takes its place
const ENDED = ['stopped', 'finished', 'failed'];

export class LearnView {
  constructor(app) {
    this.app = app;
    this.run = null;
    this.follows = true; // the newest checkpoint
    this.tab = new TabTraining(app);
    this.tab.onchange = () => {
      if (this.run?.id === TAB_RUN) this.refresh();
    };
  }

  async show({ wanted = null, isToTrain = false } = {}) {
    const { app } = this;
    this.isOpen = true;
    app.stage.setCars([]);
    app.stage.pace = app.pace;
    app.stage.camera.setMode('track');
    app.setInsets();
    app.tools();
    if (this.rests) this.tab.resume();
    this.rests = false;
    await this.loadRuns();
    if (!this.isOpen) return;
    const first =
      this.runs.find((one) => one.id === wanted) ||
      this.runs.find((one) => one.id === TAB_RUN) ||
      this.runs.find((one) => one.state === 'running' && one.track === app.track.id) ||
      this.runs.find((one) => one.state === 'running') ||
      this.runs.find((one) => one.track === app.track.id) ||
      (isToTrain ? null : this.runs[0]);
    if (first) await this.choose(first.id);
    else this.showUntrained();
  }

  hide() {
    this.isOpen = false;
    this.rests = this.tab.isRunning; // while another view is open, so that it has the cores
    this.tab.pause();
    this.stopFilm();
    this.events?.close();
    this.events = null;
    const { stage } = this.app;
    stage.setSwarm(null);
    stage.setTrack(this.app.track);
    this.app.resetCamera();
  }

  async loadRuns() {
    const { server } = this.app;
    const served = server.has('runs') ? await server.get('api/runs').catch(() => []) : [];
    this.recorded ??= await fetch('data/recorded-run.json')
      .then((answer) => (answer.ok ? answer.json() : null))
      .catch(() => null);
    this.runs = [...(this.tab.run ? [this.tab.run] : []), ...served, ...(this.recorded ? [this.recorded] : [])];
    this.recipes = server.has('runs') ? await server.get('api/recipes').catch(() => []) : [];
  }

  async choose(id) {
    const { app } = this;
    this.events?.close();
    this.events = null;
    this.stopFilm();
    this.follows = true;
    this.shownStep = null;
    this.bestUrl = null;
    const listed = this.runs.find((one) => one.id === id);
    try {
      // The run's road is shown; the visitor's own choice of a track stays.
      this.road = await loadTrack(listed.track, app.engine.description);
    } catch (error) {
      app.say(error.message);
      return;
    }
    if (!this.isOpen) return;
    app.stage.setTrack(this.road);
    this.run = id === RECORDED || id === TAB_RUN ? listed : { curves: {}, ...listed };
    app.stage.setSwarm(null);
    app.stage.setCars([]);
    this.panel();
    if (id !== RECORDED && id !== TAB_RUN) this.follow(id);
    await this.refresh();
  }

  /** No run: the visitor's road, with cars that have not learned yet, and what can be trained. */
  showUntrained() {
    const { app } = this;
    this.run = null;
    this.road = app.track;
    app.stage.setSwarm(new Swarm(app.engine, app.track, null, SWARM_CARS, 0));
    this.panel();
    app.announce(UNTRAINED);
  }

  /** Follow a run of the server while it changes. */
  follow(id) {
    const events = new EventSource(`api/runs/${encodeURIComponent(id)}/events`);
    this.events = events;
    events.addEventListener('run', (event) => {
      const run = JSON.parse(event.data);
      this.run = { ...this.run, ...run, curves: run.curves || this.run.curves };
      this.refresh();
      if (ENDED.includes(run.state)) events.close();
    });
    events.addEventListener('curves', (event) => {
      for (const [name, fresh] of Object.entries(JSON.parse(event.data))) {
        const before = this.run.curves[name] || { step: [], value: [] };
        const kept = before.step.findIndex((step) => step >= fresh.step[0]);
        const count = kept < 0 ? before.step.length : kept;
        this.run.curves[name] = {
          step: [...before.step.slice(0, count), ...fresh.step],
          value: [...before.value.slice(0, count), ...fresh.value],
        };
      }
      this.charts();
    });
  }

  panel() {
    const { app, run } = this;
    const side = find('#side');
    const parts = [];
    if (this.runs.length) {
      const select = make(
        'select',
        { id: 'run', onchange: (event) => this.choose(event.target.value) },
        ...this.runs.map((one) =>
          make('option', {
            value: one.id,
            text: NAMES[one.id] || runName(one.id, this.trackName(one.track)),
          }),
        ),
      );
      if (!run) select.prepend(make('option', { value: '', text: 'Look at a run', disabled: true }));
      select.value = run?.id ?? '';
      parts.push(make('label', { class: 'field' }, 'Run', select));
    }
    if (run) {
      this.status = make('p', { id: 'run-status' });
      this.slider = make('input', {
        type: 'range',
        id: 'checkpoint',
        min: 0,
        max: 0,
        value: 0,
        'aria-label': 'Checkpoint',
        oninput: () => this.slide(Number(this.slider.value)),
      });
      this.sliderText = make('b', { class: 'num', id: 'checkpoint-step' });
      this.buttons = make('div', { class: 'row' });
      this.newest = make('p', { id: 'run-laps' });
      this.lapChart = make('canvas', { class: 'chart' });
      this.doneChart = make('canvas', { class: 'chart' });
      this.gapChart = make('canvas', { class: 'chart' });
      this.returnChart = make('canvas', { class: 'chart' });
      this.verb = make('span');
      const isOther = run.track !== app.track.id;
      const stays = isOther ? `. ${app.track.name} stays chosen for the other views.` : '.';
      parts.push(
        make('p', { id: 'run-track' }, this.verb, make('b', { text: this.road.name }), stays),
        this.status,
        run.isHere ? this.newest : null,
        make('div', {}, make('p', {}, 'The AI after ', this.sliderText, ' decisions'), this.slider),
        this.buttons,
        run.isHere ? null : this.newest,
      );
      parts.push(make('div', {}, this.lapChart, this.doneChart, this.gapChart, this.returnChart));
    }
    const shown = make('div', { class: 'panel stack' }, ...parts);
    const forms = trainPanels(this);
    side.replaceChildren(...(!run || run.id === RECORDED ? [...forms, shown] : [shown, ...forms]));
    side.scrollTop = 0; // the status is what one wants to see
    app.announce(run ? 'A run and its cars' : 'No run yet');
  }

  trackName(id) {
    return this.app.trackList.find((one) => one.id === id)?.name || (this.road?.id === id ? this.road.name : id);
  }

  /** Learn in this tab, on the visitor's track. */
  async learnHere(seed) {
    try {
      await this.tab.start(this.app.track, seed);
      await this.loadRuns();
      await this.choose(TAB_RUN);
    } catch (error) {
      this.app.say(error.message);
    }
  }

  async start(recipe, steps) {
    try {
      const run = await this.app.server.post('api/runs', {
        track: this.app.track.id,
        steps,
        ...(recipe ? { recipe } : {}),
      });
      await this.loadRuns();
      if (!this.runs.some((one) => one.id === run.id)) this.runs.unshift(run);
      await this.choose(run.id);
    } catch (error) {
      this.app.say(error.message);
    }
  }

  /** Bring panel, swarm and the best so far up to the run as it is now. */
  async refresh() {
    const { run } = this;
    if (!this.isOpen || !run || !this.status) return;
    const last = this.moments.length - 1;
    const fraction = run.steps ? Math.min(1, run.step / run.steps) : 0;
    const isTraining = run.state === 'running' || run.step > 0;
    const word = { starting: isTraining ? 'Training' : READY, running: 'Training' }[run.state] || STATES[run.state];
    this.status.textContent = run.isHere
      ? this.tab.status
      : run.error
        ? `${word}: ${run.error}`
        : word === READY
          ? `${READY}. The first run on a computer compiles for about a minute.`
          : `${word}: ${stepsText(run.step)} of ${stepsText(run.steps)} decisions (${Math.floor(100 * fraction)} %)`;
    this.verb.textContent = run.isHere || !ENDED.includes(run.state) ? 'It learns on ' : 'It learned on ';
    this.slider.max = last;
    if (this.follows) this.slider.value = last;
    const moment = this.moments[Number(this.slider.value)];
    this.sliderText.textContent = stepsText(moment.step);
    showButtons(this, moment);
    this.charts();
    await this.showBest();
    if (moment.step !== this.shownStep) await this.swarm(moment);
  }

  /** The moments of a run that can be shown: untrained, then every checkpoint. */
  get moments() {
    return [{ step: 0, policy: null }, ...this.run.checkpoints];
  }

  slide(index) {
    this.stopFilm();
    this.goTo(index);
  }

  goTo(index) {
    this.follows = index === this.moments.length - 1;
    this.slider.value = index;
    return this.refresh();
  }

  /** The learning as a film: untrained cars, then one checkpoint after the other. */
  playFilm() {
    if (this.film) {
      this.stopFilm();
      this.refresh();
      return;
    }
    const next = () => {
      const index = Number(this.slider.value) + 1;
      if (index >= this.moments.length - 1) this.stopFilm();
      this.goTo(Math.min(index, this.moments.length - 1));
    };
    this.film = setInterval(next, FILM_MS / this.app.pace);
    this.goTo(0);
  }

  stopFilm() {
    clearInterval(this.film);
    this.film = null;
  }

  async command(name) {
    try {
      await this.app.server.post(`api/runs/${encodeURIComponent(this.run.id)}/${name}`);
      if (name === 'resume') this.follow(this.run.id);
    } catch (error) {
      this.app.say(error.message);
    }
  }

  async swarm({ step, policy: url }) {
    const { app, run } = this;
    this.shownStep = step;
    try {
      const policy = url ? (await loadDriver({ policy: url })).policy : null;
      if (!this.isOpen || run.id !== this.run.id || this.shownStep !== step) return;
      if (policy && run.isHere && this.follows && app.stage.swarm?.teach(policy)) return;
      app.stage.setSwarm(new Swarm(app.engine, this.road, policy, SWARM_CARS, step));
      app.announce(policy ? `${SWARM_CARS} cars after ${stepsText(step)} decisions` : UNTRAINED);
    } catch (error) {
      app.say(error.message);
    }
  }

  /** The best so far drives too, so that a collapse of the newest never ends the show. */
  async showBest() {
    const { app, run } = this;
    if (!run.best) return;
    const url = `${run.best.policy}`;
    const stamp = `${url}@${run.checkpoints.length}`;
    if (this.bestUrl === stamp) return;
    this.bestUrl = stamp;
    try {
      const { policy } = await loadDriver({ policy: url });
      const isFresh = run.isHere && app.stage.cars.length && performance.now() - this.bestMs < BEST_MS;
      if (isFresh) throw new Error('not yet');
      if (!this.isOpen || this.bestUrl !== stamp || (policy.step === this.bestStep && app.stage.cars.length)) return;
      this.bestStep = policy.step;
      this.bestMs = performance.now();
      app.stage.setCars([
        {
          id: 'best',
          name: 'Best so far',
          kind: 'model',
          colour: KINDS.human,
          makePilot: (world, car) => new PolicyPilot(world, policy, car, 1),
        },
      ]);
    } catch {
      this.bestUrl = null; // it was being replaced, or drives a lap first; the next event tries again
    }
  }

  charts() {
    if (this.run && this.lapChart?.isConnected) drawCharts(this);
  }
}
