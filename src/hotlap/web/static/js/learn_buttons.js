// What can be done with a run at a moment of it: race it, play its learning, stop it, resume it.

import { make, stepsText } from './format.js';

export const RECORDED = 'recorded';

/** Show the buttons of a run; those that stay the same are not replaced, since one of them may just be pressed. */
export function showButtons(learn, moment) {
  const look = (buttons) => [...buttons].map((one) => `${one.textContent} ${one.disabled}`).join();
  const fresh = learnButtons(learn, moment);
  if (look(fresh) !== look(learn.buttons.children)) learn.buttons.replaceChildren(...fresh);
}

function learnButtons(learn, moment) {
  const { run, film, moments } = learn;
  const isLive = run.id !== RECORDED && !run.isHere; // it is the server's
  const button = (text, action, onclick, more = {}) =>
    make('button', { class: 'button', 'data-action': action, text, onclick, ...more });
  const buttons = [
    button(isBest(learn) ? 'Race the best' : 'Race it', 'race-run', () => raceMoment(learn), {
      class: 'button main',
      disabled: !moment.policy,
    }),
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

/** Whether the driver to race is the best of a training in this tab: its newest one may not even come round. */
const isBest = ({ run, follows }) => Boolean(run.isHere && follows && run.best);

/** Race the AI as it was at the moment that the slider shows. */
function raceMoment(learn) {
  const { app, run } = learn;
  const moment = learn.moments[Number(learn.slider.value)];
  const { step, policy } = moment;
  if (isBest(learn)) {
    app.go('race', { track: run.track, driver: `trained:${run.track}` });
    return;
  }
  moment.isRaced = true; // so that a training in this tab keeps it
  const id = run.isHere ? policy : run.id === RECORDED ? `recorded@${step}` : `run:${run.id}@${step}`;
  const name = `AI after ${stepsText(step)}`;
  app.addDriver({ id, name, kind: 'model', track: run.track, policy, replay: null }, run.track);
  app.go('race', { track: run.track, driver: id });
}
