// The buttons of every view, and their keys: sound, theme, camera, zoom, and what the picture shows.

import { find, make } from './format.js';
import { recall, remember } from './storage.js';

// What the picture can show: the stage's property, the button's text, and its key.
const TOGGLES = [
  ['showRays', 'Rays', 'V'],
  ['showLine', 'Optimal line', 'L'],
  ['bySpeed', 'Speed colours', 'K'],
];

/** Let the buttons for sound and theme work; the theme is remembered. */
export function bindButtons(app) {
  const sound = find('#sound-button');
  sound.setAttribute('aria-pressed', String(app.sound.isOn));
  sound.addEventListener('click', () => sound.setAttribute('aria-pressed', String(app.sound.toggle())));
  const theme = recall('theme', null);
  if (theme) document.documentElement.dataset.theme = theme;
  find('#theme-button').addEventListener('click', () => {
    const isDark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    document.documentElement.dataset.theme = isDark ? 'light' : 'dark';
    remember('theme', document.documentElement.dataset.theme);
  });
}

/** The buttons at the picture's edge. */
export function showTools(app) {
  const { stage } = app;
  const follow = stage.camera.mode === 'follow';
  find('#view-tools').replaceChildren(
    make(
      'button',
      { class: 'tool', 'data-action': 'camera', onclick: () => app.toggleCamera() },
      follow ? 'Whole track' : 'Follow',
      make('kbd', { text: 'C' }),
    ),
    make(
      'div',
      { class: 'zoom' },
      make('button', { class: 'tool', text: '−', 'aria-label': 'Zoom out', onclick: () => stage.camera.zoom(-1) }),
      make('button', { class: 'tool', text: '+', 'aria-label': 'Zoom in', onclick: () => stage.camera.zoom(1) }),
    ),
    ...TOGGLES.map(([name, text, key]) =>
      make(
        'button',
        {
          class: 'tool',
          'aria-pressed': String(stage[name]),
          'data-toggle': name,
          onclick: () => toggle(app, name),
        },
        text,
        make('kbd', { text: key }),
      ),
    ),
  );
}

function toggle(app, name) {
  app.stage[name] = !app.stage[name];
  app.tools();
}

/** Do what a key asks for; false if it is the key of no button. */
export function pressKey(app, event) {
  const { camera } = app.stage;
  const toggled = TOGGLES.find(([, , key]) => event.code === `Key${key}`);
  if (event.code === 'KeyC') app.toggleCamera();
  else if (event.key === '+' || event.key === '=') camera.zoom(1);
  else if (event.key === '-') camera.zoom(-1);
  else if (toggled) toggle(app, toggled[0]);
  else if (event.code === 'KeyM') find('#sound-button').click();
  else return false;
  return true;
}
