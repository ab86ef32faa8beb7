// The bar under a replay: play, pause, ticks one by one, a slider, the pace.

import { find, lapText, make } from './format.js';

const PACES = [0.5, 1, 2];

/** Show the bar for `numTicks`; `onTick` is called after each. Returns a function that plays or pauses. */
export function showPlayback(stage, numTicks, onTick = () => {}) {
  const seconds = (tick) => lapText(tick / stage.engine.ticksPerSecond);
  const clock = make('span', { class: 'num', text: seconds(0) });
  const slider = make('input', { type: 'range', min: 0, max: numTicks, value: 0, 'aria-label': 'Tick' });
  const play = make('button', {
    class: 'tool',
    text: '❚❚',
    title: 'Play or pause (space)',
    'aria-label': 'Play or pause',
  });
  const isAtEnd = () => stage.tick >= numTicks;
  const setPaused = (isPaused) => {
    stage.paused = isPaused;
    play.textContent = isPaused ? '▶' : '❚❚';
  };
  const update = () => {
    slider.value = stage.tick;
    clock.textContent = `${seconds(stage.tick)} · tick ${stage.tick}`;
  };
  const seek = (tick) => {
    setPaused(true);
    if (tick < stage.tick) stage.restart();
    while (stage.tick < tick && !isAtEnd()) stage.advance();
    onTick();
    update();
  };
  stage.onTick = () => {
    if (isAtEnd()) setPaused(true);
    onTick();
    update();
  };
  play.onclick = () => {
    if (isAtEnd()) stage.restart();
    setPaused(!stage.paused);
  };
  slider.oninput = () => seek(Number(slider.value));
  const step = (count, text, label) =>
    make('button', {
      class: 'tool step',
      text,
      title: label,
      'aria-label': label,
      onclick: () => seek(Math.max(0, stage.tick + count)),
    });
  const pace = make('button', {
    class: 'tool',
    text: '1×',
    title: 'Speed',
    'aria-label': 'Speed',
    onclick: () => {
      stage.pace = PACES[(PACES.indexOf(stage.pace) + 1) % PACES.length];
      pace.textContent = `${stage.pace === 0.5 ? '½' : stage.pace}×`;
    },
  });
  const box = find('#playback');
  box.replaceChildren(play, step(-1, '‹', 'One tick back'), step(1, '›', 'One tick on'), slider, pace, clock);
  box.hidden = false;
  update();
  return () => play.click();
}
