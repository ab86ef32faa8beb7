// Laps that this browser sent to the server's board, and the name that they were sent under.

import { recall, remember } from './storage.js';

const MAX_KEPT = 500;

const keyOf = (entry) => `${entry.track}:${entry.id}:${entry.lap_time_sec}`;

/** The visitor's name, or '' if none was given. */
export const ownName = () => recall('name', '');

/** A secret that only this browser has: whoever knows it may rename its laps. */
function ownSecret() {
  const known = recall('owner', null);
  if (known) return known;
  const secret = [...crypto.getRandomValues(new Uint8Array(16))]
    .map((one) => one.toString(16).padStart(2, '0'))
    .join('');
  remember('owner', secret);
  return secret;
}

export class Board {
  constructor(server) {
    this.server = server;
  }

  /** Send a lap, which the server drives again; the entry is known as this visitor's from now on. */
  async send(track, driver, replay) {
    const entry = await this.server.post('api/board', { track, driver, replay, owner: ownSecret() });
    remember('sent', [...recall('sent', []), keyOf(entry)].slice(-MAX_KEPT));
    return entry;
  }

  /** Be called otherwise from now on, and on the laps that this browser sent; the number of those. */
  async rename(driver) {
    remember('name', driver);
    if (!driver || !this.server.has('board')) return 0;
    return (await this.server.post('api/board/name', { owner: ownSecret(), driver })).renamed;
  }

  isOwn(entry) {
    return Boolean(entry.isOwn) || recall('sent', []).includes(keyOf(entry));
  }
}
