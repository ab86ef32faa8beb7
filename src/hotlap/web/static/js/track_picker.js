// The dialog that chooses a track: thumbnails, medal times, search.

import { COLOURS, MEDALS } from './colours.js';
import { find, lapText, make } from './format.js';
import { drawMap } from './minimap.js';
import { loadTrack } from './tracks.js';

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
    const search = make('input', {
      class: 'search',
      type: 'search',
      placeholder: 'Search tracks',
      'aria-label': 'Search tracks',
    });
    const list = make('div', { class: 'tracks' });
    search.addEventListener('input', () => this.fill(list, search.value));
    this.dialog.replaceChildren(
      make(
        'header',
        {},
        search,
        make('button', { class: 'button', text: 'Close', onclick: () => this.dialog.close() }),
      ),
      list,
    );
    this.dialog.showModal();
    if (!matchMedia('(pointer: coarse)').matches) search.focus();
    const { server } = this.app;
    const found = server.connected ? server.get('api/tracks?split=1') : server.tracks();
    this.tracks = await found.catch(() => this.app.trackList);
    this.fill(list, search.value);
  }

  fill(list, words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const fitting = this.tracks.filter((track) =>
      wanted.every((word) => `${track.id} ${track.name} ${track.character}`.toLowerCase().includes(word)),
    );
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
    if (!fitting.length) list.append(make('p', { class: 'hint', text: 'No track has these words.' }));
  }

  drawCard(card) {
    this.observer.unobserve(card);
    if (card.disabled || !card.dataset.track) return;
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
      make('b', { text: track.name }),
      make('small', {
        text: track.error || `${track.length_m ? `${Math.round(track.length_m)} m · ` : ''}${track.character}`,
      }),
      medals.length ? make('div', { class: 'medals' }, ...medals) : null,
    );
  }
}
