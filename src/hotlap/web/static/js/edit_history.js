// What a drawing was before each change, so that it can be had back.

const MAX_STEPS = 100;

export class EditHistory {
  constructor() {
    this.before = [];
    this.after = [];
  }

  /** Remember a drawing before it changes. */
  keep(points, width) {
    this.before.push(copy(points, width));
    if (this.before.length > MAX_STEPS) this.before.shift();
    this.after = [];
  }

  /** The drawing before the last change, or null; the one given can be had again. */
  undo(points, width) {
    return swap(this.before, this.after, points, width);
  }

  redo(points, width) {
    return swap(this.after, this.before, points, width);
  }
}

function copy(points, width) {
  return { points: points.map((point) => [...point]), width };
}

function swap(from, to, points, width) {
  if (!from.length) return null;
  to.push(copy(points, width));
  return from.pop();
}
