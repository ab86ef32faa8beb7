// What can be trained: a driver in this tab, or with a server by a recipe.

import { lapText, make } from './format.js';
import { TAB_RUN } from './tab_training.js';
import { recallTrained } from './trained_drivers.js';

const DEFAULT_RECIPE = 'racer-ppo';
const MAX_SEED = 2 ** 53 - 1;

/** The panels below or above the run that is shown. */
export function trainPanels(learn) {
  return [tabForm(learn), learn.app.server.has('runs') ? serverForm(learn) : null].filter(Boolean);
}

/** Train in this tab. */
function tabForm(learn) {
  const { app } = learn;
  const seed = make('input', { type: 'number', id: 'tab-seed', value: 1, min: 0, max: MAX_SEED, step: 1 });
  const kept = recallTrained(app.track.id, app.engine.physics);
  const isShown = learn.run?.id === TAB_RUN;
  return make(
    'details',
    { class: 'panel', id: 'train-here', open: !isShown },
    make('summary', { text: isShown ? 'Learn again' : 'Train in this tab' }),
    make(
      'div',
      { class: 'stack' },
      make('p', {
        text: `On ${app.track.name}, without a server: 256 cars learn in this browser until you stop them.`,
      }),
      make('label', { class: 'field' }, 'Seed', seed),
      make('button', {
        class: 'button main',
        'data-action': 'learn-here',
        text: 'Learn',
        onclick: () => learn.learnHere(Math.min(MAX_SEED, Math.max(0, Math.floor(Number(seed.value)) || 0))),
      }),
      kept && !isShown ? keptDriver(learn, kept) : null,
    ),
  );
}

/** The driver of an earlier training on this track. */
function keptDriver(learn, { track, lap }) {
  const { app } = learn;
  return make(
    'div',
    { class: 'stack', id: 'kept-driver' },
    make('p', { text: `Your driver here laps in ${lapText(lap)}.` }),
    make(
      'div',
      { class: 'row' },
      make('button', {
        class: 'button',
        'data-action': 'race-kept',
        text: 'Race it',
        onclick: () => app.go('race', { track, driver: `trained:${track}` }),
      }),
      make('button', {
        class: 'button',
        'data-action': 'download-kept',
        text: 'Download',
        onclick: () => learn.tab.download(track).catch((error) => app.say(error.message)),
      }),
    ),
  );
}

/** Train with the server. */
function serverForm(learn) {
  const { app, recipes } = learn;
  const recipe = make(
    'select',
    { id: 'recipe' },
    ...recipes.map((one) => make('option', { value: one.name, text: one.name, title: one.description })),
  );
  if (recipes.some((one) => one.name === DEFAULT_RECIPE)) recipe.value = DEFAULT_RECIPE;
  const steps = make('input', { type: 'number', id: 'steps', value: 2000000, min: 1000, step: 100000 });
  return make(
    'details',
    { class: 'panel', open: !learn.run },
    make('summary', { text: 'Train with the server' }),
    make(
      'div',
      { class: 'stack' },
      make('p', { text: `On ${app.track.name}. It goes on without this page.` }),
      recipes.length ? make('label', { class: 'field' }, 'Recipe', recipe) : null,
      make('label', { class: 'field' }, 'Decisions', steps),
      make('button', {
        class: 'button main',
        'data-action': 'train',
        text: 'Start training',
        onclick: () => learn.start(recipe.value, Number(steps.value)),
      }),
    ),
  );
}
