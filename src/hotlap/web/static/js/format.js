// Numbers as text, and small helpers for the document.

/** 31.217 s as 0:31.217, without jitter: always the same number of digits. */
export function lapText(seconds) {
  if (!Number.isFinite(seconds)) return '–:––.–––';
  const thousandths = Math.floor(seconds * 1000 + 1e-6);
  const minutes = Math.floor(thousandths / 60000);
  const rest = String(thousandths % 60000).padStart(5, '0');
  return `${minutes}:${rest.slice(0, 2)}.${rest.slice(2)}`;
}

export function deltaText(seconds, digits = 2) {
  if (!Number.isFinite(seconds)) return `±0.${'0'.repeat(digits)}`;
  return `${seconds < 0 ? '−' : '+'}${Math.abs(seconds).toFixed(digits)}`;
}

export function percentText(fraction) {
  return Number.isFinite(fraction) ? `${fraction < 0 ? '−' : '+'}${Math.abs(100 * fraction).toFixed(1)} %` : '–';
}

/** A part of a whole, rounded down so that only the whole of it reads 100 %: 96.6 %. */
export function fractionText(fraction) {
  return `${Math.floor(1000 * fraction + 1e-6) / 10} %`;
}

export function stepsText(steps) {
  if (steps >= 1e6) return `${(steps / 1e6).toFixed(steps >= 1e7 ? 1 : 2)} M`;
  return steps >= 1000 ? `${Math.round(steps / 1000)} k` : String(steps);
}

/** A track in one or two sentences: 2408 m. Fast: long straights. */
export function aboutTrack(track) {
  const { character } = track;
  const about = character ? ` ${character[0].toUpperCase()}${character.slice(1)}.` : '';
  return `${Math.round(track.length_m)} m.${about}`;
}

/** An element with attributes and children; text children are text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === 'class') element.className = value;
    else if (key === 'text') element.textContent = value;
    else if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (selector) => document.querySelector(selector);

/** Set an element's text only where it changed: layout is expensive. */
export function setText(element, text) {
  if (element.firstChild?.nodeValue !== text) element.textContent = text;
}
