// The buttons of every view, and their keys: sound, theme, camera, zoom, and what the picture shows.

import { find, make } from './format.js';
import { recall, remember } from './storage.js';

// What the picture can show: the stage's property, the button's text, its key, and what it is.
const TOGGLES = [
  ['showRays', 'Rays', 'V', 'The rays with which a driver sees the road.'],
  ['showLine', 'Optimal line', 'L', 'The line of the fastest lap that was computed, from red (slow) to blue (fast).'],
  ['bySpeed', 'Speed colours', 'K', 'The trace behind a car, from red (slow) to blue (fast).'],
  ['isNight', 'Night', 'N', 'The picture by night.'],
];

// Each camera on its button, and what it does.
const CAMERAS = {
  chase: ['Turns with the car', 'The camera turns with the car: the road ahead is up.'],
  follow: ['Follows the car', 'The camera follows the car and does not turn: north is up.'],
  track: ['Whole track', 'The camera stays and shows the whole track.'],
};
const MARGIN_PX = 12;
const CAMERA_SAID_MS = 2500;
const NO_LINE = 'The optimal line of this track is not known.';

/** What panels cover at the sides of the picture, in canvas pixels: as they are just now. */
export function panelInsets({ canvas, dpr }) {
  const whole = canvas.getBoundingClientRect();
  const inset = { top: 0, right: 0, bottom: 0, left: 0 };
  const isWide = whole.width > whole.height;
  for (const [selector, side] of [
    ['#side', isWide ? 'left' : 'top'],
    ['#view-tools', isWide ? 'right' : 'top'],
    ['.dash', 'bottom'],
    ['.map-box', 'bottom'],
  ]) {
    const box = find(selector)?.getBoundingClientRect();
    if (!box?.width) continue;
    const covered = {
      left: box.right - whole.left,
      right: whole.right - box.left,
      top: box.bottom - whole.top,
      bottom: whole.bottom - box.top,
    }[side];
    const limit = 0.45 * (side === 'left' || side === 'right' ? whole.width : whole.height);
    inset[side] = Math.max(inset[side], Math.min(limit, covered + MARGIN_PX) * dpr);
  }
  return inset;
}

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
  const [camera, about] = CAMERAS[stage.camera.mode] || ['', ''];
  const nextCamera = () => changeCamera(app);
  find('#view-tools').replaceChildren(
    make(
      'button',
      { class: 'tool', 'data-action': 'camera', title: `${about} Press for another one.`, onclick: nextCamera },
      make('small', { text: 'Camera' }),
      camera,
      make('kbd', { text: 'C' }),
    ),
    make(
      'div',
      { class: 'zoom' },
      make('button', { class: 'tool', text: '−', 'aria-label': 'Zoom out', onclick: () => stage.camera.zoom(-1) }),
      make('button', { class: 'tool', text: '+', 'aria-label': 'Zoom in', onclick: () => stage.camera.zoom(1) }),
    ),
    ...TOGGLES.map(([name, text, key, title]) =>
      make(
        'button',
        {
          class: 'tool',
          'aria-pressed': String(stage[name]),
          'data-toggle': name,
          title,
          onclick: () => toggle(app, name),
        },
        text,
        make('kbd', { text: key }),
      ),
    ),
  );
}

/** Take the next camera, and say what it does. */
export function changeCamera(app) {
  app.toggleCamera();
  app.say(CAMERAS[app.stage.camera.mode][1], CAMERA_SAID_MS);
}

function toggle(app, name) {
  const { stage } = app;
  if (name === 'showLine' && !stage.showLine && !stage.track?.line) {
    app.say(NO_LINE);
    return;
  }
  stage[name] = !stage[name];
  app.tools();
  app.views[app.view]?.paint?.(); // Draw has a picture of its own
}

/** Do what a key asks for; false if it is the key of no button. A key that is held zooms on, and switches once. */
export function pressKey(app, event) {
  const { camera } = app.stage;
  const toggled = TOGGLES.find(([, , key]) => event.code === `Key${key}`);
  if (event.key === '+' || event.key === '=') camera.zoom(1);
  else if (event.key === '-') camera.zoom(-1);
  else if (event.repeat && (toggled || event.code === 'KeyC' || event.code === 'KeyM')) return true;
  else if (event.code === 'KeyC') changeCamera(app);
  else if (toggled) toggle(app, toggled[0]);
  else if (event.code === 'KeyM') find('#sound-button').click();
  else return false;
  return true;
}
