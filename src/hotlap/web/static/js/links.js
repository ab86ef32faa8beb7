// Links to a replay: on a server a short id, else the whole replay.

import { ownName } from './board.js';
import { lineFromText, lineToText } from './drawn_line.js';
import { findOwn, keepShared } from './own_tracks.js';
import { decodeRace, encodeRace, encodeRaceForLink, isRace } from './race_replay.js';
import { decodeReplay, encodeForLink, encodeReplay, fromText, toText } from './replay.js';
import { fetchBytes } from './server.js';

const LOCAL = ['127.0.0.1', 'localhost', '[::1]'];
const SEEN = { lap: 'sees this lap driven again', race: 'sees this race driven again' };

export const DEFAULT_TRACK = 'track-01';

/** An address without its view: the page with a track, and perhaps a driver. */
export function pathTo(track, driver = null) {
  const query = new URLSearchParams();
  if (track !== DEFAULT_TRACK) query.set('track', track);
  if (driver) query.set('driver', driver);
  const text = query.toString();
  return `${location.pathname}${text ? `?${text}` : ''}`;
}

export class Links {
  constructor(app) {
    this.app = app;
  }

  /** Copy a link to a lap; `keys` are those that it was driven with, or null, `numTicks` those until its end. */
  shareLap(replay, keys, numTicks) {
    return this.share(
      'lap',
      () => encodeReplay(replay),
      () => encodeForLink(replay, keys, numTicks),
    );
  }

  /** Copy a link to a race against rivals. */
  shareRace(race) {
    return this.share(
      'race',
      () => encodeRace(race),
      () => encodeRaceForLink(race, race.keys),
    );
  }

  /** With a server, the whole replay is kept there, after it was driven again; else the link holds it. */
  async share(kind, encodeWhole, encodeShort) {
    const { app } = this;
    try {
      let hash;
      if (app.server.has('replays')) {
        const replay = toText(await encodeWhole());
        const { id } = await app.server.post('api/replays', { track: app.track.id, driver: ownName() || null, replay });
        hash = `id=${id}`;
      } else {
        const driver = ownName() ? `&driver=${encodeURIComponent(ownName())}` : '';
        const own = findOwn(app.track.id);
        const line = own ? `&line=${lineToText(own.points, own.width_m)}` : ''; // the road too: nobody else has it
        hash = `replay=${toText(encodeShort())}${driver}${line}`;
      }
      const link = `${location.origin}${pathTo(app.track.id)}#watch?${hash}`;
      const whoever = LOCAL.includes(location.hostname) ? 'Whoever opens it on this computer' : 'Whoever opens it';
      await app.copyLink(link, `The link is copied. ${whoever} ${SEEN[kind]}.`);
      return link;
    } catch (error) {
      app.say(`There is no link: ${error.message}`);
      return null;
    }
  }

  /** Keep the road that a link to a lap holds, under a name that is free; the address with that name. */
  keepRoad(wanted) {
    const text = wanted.view === 'draw' ? null : wanted.more.get('line');
    if (!text) return wanted;
    try {
      const { points, width } = lineFromText(text);
      const track = keepShared({ points, width_m: width }, wanted.track);
      history.replaceState(null, '', `${location.pathname}?track=${track}${location.hash}`);
      return { ...wanted, track };
    } catch (error) {
      this.app.say(error.message);
      return wanted;
    }
  }

  /** The replay that an address holds or names, or null; an error in one line where it is none. */
  async open(more) {
    const id = more.get('id');
    if (!id && !more.get('replay')) return null;
    if (id && !this.app.server.connected) throw new Error('This replay is on a server that is not here.');
    const about = id ? await this.app.server.get(`api/replays/${encodeURIComponent(id)}?form=about`) : {};
    const bytes = id
      ? new Uint8Array(await fetchBytes(`api/replays/${encodeURIComponent(id)}`))
      : fromText(more.get('replay'));
    const replay = await (isRace(bytes) ? decodeRace(bytes) : decodeReplay(bytes));
    return { ...replay, id, driver: (about.driver || more.get('driver'))?.slice(0, 32) };
  }
}
