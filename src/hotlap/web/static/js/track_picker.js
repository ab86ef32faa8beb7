// The dialog that chooses a track: thumbnails, medal times, search.

import { COLOURS, MEDALS } from './colours.js';
import { find, lapText, make } from './format.js';
import { drawMap, drawShape } from './minimap.js';
import { loadTrack } from './tracks.js';

const LENGTHS = [
  ['', 'Any length'],
  ['0-1000', 'Up to 1 km'],
  ['1000-2000', '1 to 2 km'],
  ['2000-3000', '2 to 3 km'],
  ['3000-100000', 'Over 3 km'],
];
const KINDS_OF_TRACKS = [
  ['', 'Any character'],
  ['fast', 'Fast'],
  ['flowing', 'Flowing'],
  ['technical', 'Technical'],
  ['hairpin', 'With hairpins'],
];

export class TrackPicker {
  constructor(app) {
    this.app = app;
    this.dialog = find('#track-dialog');
    this.dialog.addEventListener('click', (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    find('#track-button').addEventListener('click', () => this.open());
  }

  async open() {
    this.app.rest(); // a race does not go on behind the dialog
    const search = make('input', {
      class: 'search',
      type: 'search',
      placeholder: 'Search tracks',
      'aria-label': 'Search tracks',
    });
    const list = make('div', { class: 'tracks' });
    const choose = (name, label, options) =>
      make(
        'select',
        { 'aria-label': label, 'data-filter': name, onchange: () => fill() },
        ...options.map(([value, text]) => make('option', { value, text })),
      );
    const length = choose('length', 'Length', LENGTHS);
    const kind = choose('kind', 'Character', KINDS_OF_TRACKS);
    const fill = () => this.fill(list, search.value, length.value, kind.value);
    search.addEventListener('input', fill);
    this.dialog.replaceChildren(
      make(
        'header',
        {},
        search,
        length,
        kind,
        make('button', { class: 'button', text: 'Close', onclick: () => this.dialog.close() }),
      ),
      list,
    );
    this.dialog.style.height = '';
    this.dialog.showModal();
    if (!matchMedia('(pointer: coarse)').matches) search.focus();
    this.tracks = await this.app.server.allTracks().catch(() => this.app.trackList);
    fill();
    this.dialog.style.height = `${this.dialog.offsetHeight}px`; // nothing moves while one types
  }

  /** Show the tracks with all these words, of a length ('1000-2000' m) and a character; the day's track first. */
  fill(list, words, length, kind) {
    const wanted = [...words.toLowerCase().split(/\s+/), kind].filter(Boolean);
    const [low, high] = length ? length.split('-').map(Number) : [0, Infinity];
    const daily = this.app.daily?.id;
    const fitting = this.tracks
      .filter((track) =>
        wanted.every((word) => `${track.id} ${track.name} ${track.character}`.toLowerCase().includes(word)),
      )
      .filter((track) => !length || (track.length_m >= low && track.length_m < high))
      .sort((a, b) => (b.id === daily) - (a.id === daily));
    // A map is drawn when its card comes into view: there may be more than a hundred.
    this.observer?.disconnect();
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) if (entry.isIntersecting) this.drawCard(entry.target);
      },
      { root: list, rootMargin: '200px' },
    );
    list.replaceChildren(...fitting.map((track) => this.card(track)));
    for (const card of list.children) this.observer.observe(card);
    if (!fitting.length) list.append(make('p', { class: 'hint', text: 'No track is like this.' }));
  }

  drawCard(card) {
    this.observer.unobserve(card);
    if (card.disabled || !card.dataset.track) return;
    const { shape } = this.tracks.find((one) => one.id === card.dataset.track);
    if (shape) {
      drawShape(card.querySelector('canvas'), shape, { road: COLOURS.text, width: 3, dpr: 2 });
      return;
    }
    loadTrack(card.dataset.track, this.app.engine.description)
      .then((full) => drawMap(card.querySelector('canvas'), full, { road: COLOURS.text, width: 3, dpr: 2 }))
      .catch(() => {});
  }

  card(track) {
    const canvas = make('canvas', { width: 480, height: 240, 'aria-hidden': 'true' });
    const medals = Object.entries(track.medals_sec || {}).map(([name, seconds]) => {
      const dot = make('i');
      dot.style.background = MEDALS[name];
      return make('span', { title: name }, dot, lapText(seconds));
    });
    return make(
      'button',
      {
        class: 'track-card',
        'data-track': track.id,
        disabled: Boolean(track.error),
        'aria-current': track.id === this.app.track?.id ? 'true' : null,
        onclick: () => {
          this.dialog.close();
          this.app.chooseTrack(track.id);
        },
      },
      canvas,
      track.id === this.app.daily?.id ? make('i', { class: 'today', text: 'Track of the day' }) : null,
      make('b', { text: track.name }),
      make('small', {
        text: track.error || `${track.length_m ? `${Math.round(track.length_m)} m · ` : ''}${track.character}`,
      }),
      medals.length ? make('div', { class: 'medals' }, ...medals) : null,
    );
  }
}
