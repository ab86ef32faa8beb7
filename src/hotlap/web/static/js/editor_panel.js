// The panel of a drawing: what is wrong with it, its width and name, and what to do with it.

import { find, make } from './format.js';

const WITHOUT_SERVER = 'Saved in this browser. Its optimal lap and track files need a server: hotlap play.';
const HOW_TO_DRAW = matchMedia('(pointer: coarse)').matches
  ? 'Draw a loop with a finger. Then pull its points; a double tap deletes one.'
  : 'Draw a loop with the mouse. Then pull its points; a double click deletes one.';

/** Buttons side by side. */
function row(...buttons) {
  return make('div', { class: 'row' }, ...buttons.map((one) => make('button', { class: 'button', ...one })));
}

/** Show the panel of a drawing as it is now. */
export function showPanel(draw) {
  draw.optimum = make('p', { id: 'optimum' });
  const parts = [
    status(draw),
    trackButtons(draw),
    widthField(draw),
    shapeButtons(draw),
    nameField(draw),
    fileButtons(draw),
    draw.optimum,
    draw.app.server.connected ? openButton(draw) : make('p', { text: WITHOUT_SERVER }),
  ];
  find('#side').replaceChildren(make('div', { class: 'panel stack' }, make('h2', { text: 'Draw a track' }), ...parts));
}

/** What is wrong with the drawing, how long its road is, or what to do. */
function status(draw) {
  if (draw.refused) return refusal(draw);
  if (draw.fault) return make('p', { class: 'note', id: 'draw-fault', role: 'alert', text: draw.fault.text });
  if (!draw.isReady) return make('p', { text: draw.points.length ? 'Checking…' : HOW_TO_DRAW });
  const hasGeneralist = draw.app.drivers.some((one) => one.kind === 'generalist');
  const driver = hasGeneralist ? 'The generalist drives it.' : 'Save it, and the casual driver drives it.';
  const text = `${Math.round(draw.road.length_m)} m of road. ${driver}`;
  return make('p', { class: 'note good', id: 'draw-ok', text });
}

/** A new line that is no road: why, and that the one before stays. */
function refusal(draw) {
  return make(
    'div',
    { class: 'stack' },
    make('p', {
      class: 'note',
      id: 'draw-refused',
      role: 'alert',
      text: `${draw.refused.text} The line of before stays.`,
    }),
    row({
      text: 'Take the new line and mend it',
      onclick: () => draw.replace(draw.refused.points),
    }),
  );
}

function widthField(draw) {
  const label = make('span', { text: `Width ${draw.width} m` });
  const width = make('input', {
    type: 'range',
    min: 7,
    max: 20,
    step: 0.5,
    value: draw.width,
    'aria-label': 'Width of the road',
    onpointerdown: () => draw.keep(),
    oninput: (event) => {
      draw.saved = null;
      draw.width = Number(event.target.value);
      label.textContent = `Width ${draw.width} m`;
      draw.checkSoon();
    },
  });
  return make('label', { class: 'field' }, label, width);
}

function nameField(draw) {
  const name = make('input', {
    type: 'text',
    id: 'draw-name',
    value: draw.name,
    maxlength: 64,
    pattern: '[a-z0-9][a-z0-9_\\-]*',
    onchange: (event) => {
      draw.name = event.target.value;
    },
  });
  return make('label', { class: 'field' }, 'Name', name);
}

/** Example, Reverse, Clear; and back to what it was before. */
function shapeButtons(draw) {
  const disabled = !draw.points.length;
  const { before, after } = draw.history;
  return make(
    'div',
    { class: 'stack' },
    row(
      { text: 'Example', onclick: () => draw.example() },
      { text: 'Reverse', disabled, onclick: () => draw.reverse() },
      { text: 'Clear', disabled, onclick: () => draw.clear() },
    ),
    row(
      {
        text: 'Undo',
        'data-action': 'undo',
        title: 'Ctrl+Z',
        disabled: !before.length,
        onclick: () => draw.undo(),
      },
      {
        text: 'Redo',
        'data-action': 'redo',
        title: 'Ctrl+Shift+Z',
        disabled: !after.length,
        onclick: () => draw.undo(true),
      },
    ),
  );
}

/** Race, watch or train on the drawing, once it is a road. */
function trackButtons(draw) {
  const disabled = !draw.isReady;
  const race = { class: 'button main', 'data-action': 'race-drawing', text: 'Race it' };
  return row(
    { ...race, disabled, onclick: () => draw.save('race') },
    { text: 'Watch', disabled, onclick: () => draw.save('watch') },
    { text: 'Train', disabled, onclick: () => draw.save('learn') },
  );
}

/** Its optimal lap, its file, a link to it. */
function fileButtons(draw) {
  const disabled = !draw.isReady;
  const optimum = { text: 'Optimum', title: 'Solve its optimal lap', disabled, onclick: () => draw.solve() };
  return row(
    ...(draw.app.server.has('optimal') ? [optimum] : []),
    { text: 'Download', title: 'The track as a table: a TUM file, .csv', disabled, onclick: () => draw.download() },
    { text: 'Link', title: 'A link that holds it', disabled: !draw.points.length, onclick: () => draw.share() },
  );
}

/** A track from a file instead of a drawing. */
function openButton(draw) {
  return make(
    'div',
    { class: 'stack apart' },
    make('button', {
      class: 'button',
      'data-action': 'open-file',
      text: 'Open a track file',
      onclick: () => draw.app.files.choose(),
    }),
    make('p', { text: 'A .csv table, or a circuit of a map as .osm or .geojson. Or drop it anywhere on the page.' }),
  );
}
