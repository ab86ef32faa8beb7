// Laps that this browser sent to the server's board, and the name that they were sent under.

import { recall, remember } from './storage.js';

const MAX_KEPT = 500;

const keyOf = (entry) => `${entry.track}:${entry.id}:${entry.lap_time_sec}`;

/** The visitor's name, or '' if none was given. */
export const ownName = () => recall('name', '');

export class Board {
  constructor(server) {
    this.server = server;
  }

  /** Send a lap, which the server drives again; the entry is known as this visitor's from now on. */
  async send(track, driver, replay) {
    const entry = await this.server.post('api/board', { track, driver, replay });
    remember('sent', [...recall('sent', []), keyOf(entry)].slice(-MAX_KEPT));
    return entry;
  }

  isOwn(entry) {
    return Boolean(entry.isOwn) || recall('sent', []).includes(keyOf(entry));
  }
}
