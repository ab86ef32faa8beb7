// Small line charts of a training run.

import { COLOURS } from './colours.js';
import { stepsText } from './format.js';

const MAX_DOTS = 40; // with more points the line is enough

/**
 * `curves`: [{step, value, colour, name}]; `levels`: [{value, colour, name}]; `range`: of the values, if it is fixed;
 * `minSpan`: of the axis otherwise, so that its figures differ; `at`: the step that is shown.
 */
export function drawChart(
  canvas,
  { title, curves, levels = [], range = null, minSpan = 0.4, limit, at = null, format },
) {
  const dpr = Math.min(window.devicePixelRatio || 1, 2);
  const box = canvas.getBoundingClientRect();
  [canvas.width, canvas.height] = [Math.max(1, Math.round(box.width * dpr)), Math.max(1, Math.round(box.height * dpr))];
  const context = canvas.getContext('2d');
  context.scale(dpr, dpr);
  const [width, height] = [box.width, box.height];
  const area = { left: 46, right: width - 10, top: 24, bottom: height - 18 };
  const values = [...curves.flatMap((one) => one.value), ...levels.map((one) => one.value)].filter(Number.isFinite);
  context.font = '11px Inter, system-ui, "DejaVu Sans", sans-serif';
  context.fillStyle = COLOURS.text;
  context.textBaseline = 'middle';
  context.fillText(title, 10, 12);
  canvas.setAttribute('role', 'img');
  const lastText = curves
    .filter((one) => one.value.length)
    .map((one) => `${one.name} ${format(one.value.at(-1))}`)
    .join(', ');
  canvas.setAttribute('aria-label', `${title}: ${lastText || 'nothing yet'}`);
  if (!values.length) {
    context.fillStyle = COLOURS.faint;
    context.fillText('nothing yet', area.left, (area.top + area.bottom) / 2);
    return;
  }
  let [low, high] = range ?? [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.08 * (high - low), range ? 0 : 0.5 * (minSpan - (high - low)));
  [low, high] = [low - room, high + room];
  const x = (step) => area.left + (step / limit) * (area.right - area.left);
  const y = (value) => area.bottom - ((value - low) / (high - low)) * (area.bottom - area.top);
  context.textAlign = 'right';
  context.fillStyle = COLOURS.faint;
  context.strokeStyle = COLOURS.badge;
  context.lineWidth = 1;
  const marks = range
    ? [range[0], (range[0] + range[1]) / 2, range[1]]
    : [0.1, 0.5, 0.9].map((fraction) => low + fraction * (high - low));
  for (const value of marks) {
    context.fillText(format(value), area.left - 6, y(value));
    context.beginPath();
    context.moveTo(area.left, y(value));
    context.lineTo(area.right, y(value));
    context.stroke();
  }
  context.textAlign = 'left';
  context.fillText('0', area.left, height - 8);
  context.textAlign = 'right';
  context.fillText(`${stepsText(limit)} decisions`, area.right, height - 8);
  for (const level of levels) {
    context.strokeStyle = level.colour;
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(area.left, y(level.value));
    context.lineTo(area.right, y(level.value));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = level.colour;
    context.textAlign = 'left';
    context.fillText(level.name, area.left + 4, y(level.value) - 7);
  }
  for (const curve of curves) {
    context.strokeStyle = curve.colour;
    context.lineWidth = 1.8;
    context.lineJoin = 'round';
    context.beginPath();
    curve.step.forEach((step, k) => {
      if (Number.isFinite(curve.value[k])) context.lineTo(x(step), y(curve.value[k]));
    });
    context.stroke();
    if (curve.step.length > MAX_DOTS) continue;
    context.fillStyle = curve.colour;
    curve.step.forEach((step, k) => context.fillRect(x(step) - 1.5, y(curve.value[k]) - 1.5, 3, 3));
  }
  if (at !== null) {
    context.strokeStyle = COLOURS.text;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(at), area.top);
    context.lineTo(x(at), area.bottom);
    context.stroke();
  }
}
