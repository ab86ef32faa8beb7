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
  if (run.isHere) {
    const { tab, app } = learn;
    if (run.state === 'running') buttons.push(button('Stop', 'stop', () => tab.pause()));
    if (run.state === 'stopped') buttons.push(button('Continue', 'resume', () => tab.resume()));
    const download = () => tab.download(run.track).catch((error) => app.say(error.message));
    buttons.push(button('Download', 'download', download, { disabled: !run.step }));
  }
  if (isLive && run.state === 'running') buttons.push(button('Stop', 'stop', () => learn.command('stop')));
  if (isLive && run.state === 'stopped') buttons.push(button('Resume', 'resume', () => learn.command('resume')));
  return buttons;
}
