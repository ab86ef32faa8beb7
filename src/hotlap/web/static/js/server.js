// The server behind the page, where there is one; else the data files alone.

import { dailyTrack } from './daily.js';
import { isLineOnly, roadEntry } from './daily_road.js';
import { hasOwn, listOwn } from './own_tracks.js';
import { unpackFile } from './packed_file.js';

const RETRY_MS = 2000;
const ANY_TRACK = 'track-01';
const ORDER = ['rival', 'champion', 'generalist', 'model', 'optimal', 'casual'];
const NAMES = {
  rival: 'Rival',
  champion: 'Champion',
  generalist: 'Generalist',
  optimal: 'Optimal driver',
  casual: 'Casual driver',
};

const PAGE_RUN = /^(?:run:)?page-(.+)-(\d+)$/;

/** A run in words: those that this page began are numbered, others have a name. */
export function runName(id, trackName) {
  const match = PAGE_RUN.exec(id);
  return match ? `Your run ${match[2]} on ${trackName || match[1]}` : id;
}

/** What a driver is called. */
export function driverName({ id, name, kind }) {
  const match = PAGE_RUN.exec(id);
  return NAMES[kind] || (match ? `AI of your run ${match[2]}` : name);
}

export class Server extends EventTarget {
  constructor() {
    super();
    this.connected = false;
    this.isStatic = false;
    this.features = [];
    this.daily = null; // the day and its track, as the server has them
  }

  /** Look whether there is a server. A static host answers with "not found", and is not asked again. */
  async connect() {
    try {
      const answer = await fetch('api/status', { cache: 'no-store' });
      const status = answer.ok ? await answer.json().catch(() => null) : null;
      if (status?.server === 'hotlap') {
        this.features = status.features || [];
        this.daily = status.daily;
        this.setConnected(true);
      } else if (!this.wasConnected) this.isStatic = true;
      else this.setConnected(false);
    } catch {
      this.setConnected(false);
    }
    if (!this.isStatic && !this.timer) this.timer = setInterval(() => this.connect(), RETRY_MS);
    return this.connected;
  }

  setConnected(isConnected) {
    this.wasConnected ||= isConnected;
    if (isConnected === this.connected) return;
    this.connected = isConnected;
    this.dispatchEvent(new Event('change'));
  }

  has(feature) {
    return this.connected && this.features.includes(feature);
  }

  async get(path) {
    return this.request(path, {});
  }

  async post(path, body = {}) {
    return this.request(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async request(path, options) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      this.setConnected(false);
      throw new Error('The server does not answer. Is the command hotlap play still running?');
    }
    const value = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error(value?.error || `The server answered ${answer.status}.`);
    return value;
  }

  async tracks() {
    return this.connected
      ? this.get('api/tracks')
      : [...(await (await fetch('data/tracks.json')).json()), ...listOwn()];
  }

  /** The same with the generated ones, as far as there are any; without a server at least that of the day. */
  async allTracks() {
    if (this.connected) return this.get('api/tracks?split=1');
    const [tracks, { track }] = [await this.tracks(), dailyTrack()];
    const daily = !this.isStatic || tracks.some((one) => one.id === track) ? null : await roadEntry(track);
    return daily ? [...tracks, daily] : tracks;
  }

  /** A name that no track has: the one wanted, or with a number. */
  async freeName(wanted) {
    const tracks = await this.tracks().catch(() => []);
    const ids = new Set(tracks.map((one) => one.id));
    let [id, number] = [wanted, 2];
    for (; ids.has(id); number += 1) id = `${wanted}-${number}`;
    return id;
  }

  /** The drivers of a track: the server's, and those that ship with the page, which need not be driven first. */
  async drivers(track) {
    // On a road that this browser built, those drive who drive any.
    const isBuilt = hasOwn(track) || (this.isStatic && (await isLineOnly(track)));
    const id = encodeURIComponent(isBuilt ? ANY_TRACK : track);
    const [shipped, served] = await Promise.all([
      fetch(`data/${id}.drivers.json`)
        .then((answer) => (answer.ok ? answer.json() : []))
        .catch(() => []),
      this.connected ? this.get(`api/drivers?track=${id}`).catch(() => []) : [],
    ]);
    const ids = new Set(shipped.map((one) => one.id));
    const isUsable = (one) => one.track === null || one.track === track;
    const usable = served.filter((one) => !ids.has(one.id) && isUsable(one));
    const fitting = isBuilt ? shipped.filter((one) => one.policy && isUsable(one)) : shipped;
    return [...usable, ...fitting]
      .sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))
      .map((one) => ({ ...one, name: driverName(one) }));
  }
}

/** A file of the page or of the server. */
export async function fetchBytes(url) {
  const answer = await fetch(url);
  if (!answer.ok) {
    const value = await answer.json().catch(() => null);
    throw new Error(value?.error || `${url}: ${answer.status}`);
  }
  return unpackFile(await answer.arrayBuffer());
}
