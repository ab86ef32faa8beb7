// What can be done with a run at a moment of it: race it, play its learning, stop it, resume it.

import { make } from './format.js';

/** The buttons of a run; `isLive`: it is the server's, not the recorded one. */
export function learnButtons(learn, moment, isLive) {
  const { run, film, moments } = learn;
  const button = (text, action, onclick, more = {}) =>
    make('button', { class: 'button', 'data-action': action, text, onclick, ...more });
  const buttons = [
    button('Race it', 'race-run', () => learn.race(moment), { class: 'button main', disabled: !moment.policy }),
    button(film ? 'Stop the film' : 'Play the learning', 'film', () => learn.playFilm(), {
      disabled: moments.length < 3,
    }),
  ];
  if (isLive && run.state === 'running') buttons.push(button('Stop', 'stop', () => learn.command('stop')));
  if (isLive && run.state === 'stopped') buttons.push(button('Resume', 'resume', () => learn.command('resume')));
  return buttons;
}
