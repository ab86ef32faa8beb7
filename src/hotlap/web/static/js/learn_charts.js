// The charts of a run: lap times, completed episodes, the gap to the optimal lap, and returns.

import { drawChart } from './charts.js';
import { COLOURS } from './colours.js';
import { fractionText, setText } from './format.js';

/** Draw the curves of a run up to now, with the checkpoint that is shown, and say its newest figures. */
export function drawCharts({ run, tab, moments, slider, newest, lapChart, doneChart, gapChart, returnChart }) {
  const curve = (key, colour, name) => ({ ...(run.curves?.[key] || { step: [], value: [] }), colour, name });
  const limit = Math.max(run.steps, 1);
  const at = moments[Number(slider.value)]?.step ?? null;
  const levels = [
    run.casual_lap_time_sec ? { value: run.casual_lap_time_sec, colour: COLOURS.faint, name: 'casual' } : null,
    run.optimal_lap_time_sec ? { value: run.optimal_lap_time_sec, colour: COLOURS.optimum, name: 'optimum' } : null,
  ].filter(Boolean);
  // A run that never logged a lap beside those of its evaluations, like the recorded one, shows these.
  const isOld = !run.curves?.mean_lap_time_sec && Boolean(run.curves?.eval_lap_time_sec);
  const laps = run.isHere
    ? [curve('lap_time_sec', COLOURS.accent, 'newest'), curve('best_lap_time_sec', COLOURS.gain, 'best')]
    : isOld
      ? [curve('eval_lap_time_sec', COLOURS.accent, 'median')]
      : [curve('mean_lap_time_sec', COLOURS.accent, 'mean'), curve('best_lap_time_sec', COLOURS.gain, 'best')];
  const done = curve(isOld ? 'eval_completion_rate' : 'completion_rate', COLOURS.accent, 'completed');
  const gap = curve('gap_to_optimal', COLOURS.accent, 'gap');
  const percent = (value) => (100 * value).toFixed(0);
  lapChart.hidden = Boolean(run.isHere) && !laps[0].step.length;
  drawChart(lapChart, {
    title: 'Lap time (s)',
    minSpan: 4,
    levels,
    limit,
    at,
    format: (value) => value.toFixed(0),
    curves: laps,
  });
  // What is learned in this tab is measured by the laps of one car.
  doneChart.hidden = returnChart.hidden = Boolean(run.isHere);
  drawChart(doneChart, {
    title: 'Episodes that completed a lap (%)',
    range: [0, 1],
    limit,
    at,
    format: percent,
    curves: [done],
  });
  gapChart.hidden = !gap.step.length;
  if (gap.step.length)
    drawChart(gapChart, {
      title: 'Gap to the optimal lap (%)',
      minSpan: 0.05,
      limit,
      at,
      format: percent,
      curves: [gap],
    });
  setText(newest, tab && run.isHere ? tab.laps : lapsText(done.value.at(-1), laps, gap.value.at(-1)));
  drawChart(returnChart, {
    title: 'Return',
    limit,
    at,
    format: (value) => value.toFixed(1),
    curves: [curve('return', COLOURS.accent, 'return')],
  });
}

/** The newest figures in one line, as the terminal prints them. */
function lapsText(done, laps, gap) {
  if (done === undefined) return 'No episode has ended yet.';
  const parts = [`completed ${fractionText(done)}`];
  for (const lap of laps) if (lap.value.length) parts.push(`${lap.name} lap ${lap.value.at(-1).toFixed(2)} s`);
  if (gap !== undefined) parts.push(`gap ${(100 * gap).toFixed(1)} %`);
  return `Newest: ${parts.join(', ')}`;
}
