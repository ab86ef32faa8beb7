// What this browser remembers: settings, the driver's name, and best laps. Without storage the page works all the same.

const PREFIX = 'hotlap.';

export function recall(key, fallback) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Full, or forbidden by the browser's settings.
  }
}

/** The best lap on a road: {time, clean, date, replay (text), driver}, or null. */
export function bestOn(road, physics) {
  return recall(`best.${physics}.${road}`, null);
}

/** Keep a lap if it is better than the best so far; true if it is. */
export function keepBest(road, physics, lap) {
  const before = bestOn(road, physics);
  const isBetter = !before || (lap.clean && !before.clean) || (lap.clean === before.clean && lap.time < before.time);
  if (isBetter) remember(`best.${physics}.${road}`, lap);
  return isBetter;
}
