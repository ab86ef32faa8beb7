// A track file of the user's: dropped anywhere on the page or chosen, imported by the server, watched at once.

import { find, make } from './format.js';
import { putOptimum, solveOptimum } from './optimum.js';
import { keepTrack, parseTrack } from './tracks.js';

const MAX_MEGABYTES = 20; // as for every import
const MAX_NAME = 255;
const ENDINGS = '.csv,.txt,.osm,.geojson,.json';
const REFUSAL_MS = 12000;
const WITHOUT_SERVER =
  'Track files are read by the server. Start one with the command hotlap play, and drop the file there.';

/** The bytes of a file in base64. */
function toBase64(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(file.size ? reader.result.slice(reader.result.indexOf(',') + 1) : '');
    reader.onerror = () => fail(new Error(`${file.name} cannot be read. Is it a folder? Choose one file.`));
    reader.readAsDataURL(file);
  });
}

const hasFiles = (event) => Boolean(event.dataTransfer?.types.includes('Files'));

export class TrackFiles {
  constructor(app) {
    this.app = app;
    this.reading = null;
    this.sheet = find('#drop');
    this.input = make('input', {
      type: 'file',
      id: 'track-file',
      accept: ENDINGS,
      hidden: true,
      onchange: () => {
        const files = [...this.input.files];
        this.input.value = ''; // the same file can be chosen again
        this.open(files);
      },
    });
    document.body.append(this.input);
    for (const kind of ['dragenter', 'dragover']) window.addEventListener(kind, (event) => this.over(event));
    window.addEventListener('dragleave', (event) => {
      if (!event.relatedTarget) this.sheet.hidden = true; // it has left the window
    });
    window.addEventListener('drop', (event) => this.drop(event));
  }

  over(event) {
    if (!hasFiles(event)) return;
    event.preventDefault(); // else the browser would open the file itself
    event.dataTransfer.dropEffect = 'copy';
    this.sheet.hidden = false;
  }

  drop(event) {
    this.sheet.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.open([...event.dataTransfer.files]);
  }

  choose() {
    this.input.click();
  }

  /** Import a file and watch it driven; whatever is wrong with it is said in one line, and nothing changes. */
  async open(files) {
    const { app } = this;
    const fault = this.fault(files);
    if (fault) return app.say(fault, REFUSAL_MS);
    const [file] = files;
    this.reading = file.name;
    app.say(`Reading ${file.name}…`);
    try {
      const body = { name: file.name.slice(-MAX_NAME), content: await toBase64(file) };
      const answer = await app.server.post('api/track-files', body);
      const bytes = Uint8Array.from(atob(answer.track), (c) => c.charCodeAt(0));
      keepTrack(parseTrack(bytes.buffer, app.engine.description));
      app.picker.dialog.close();
      app.views.watch.chosen = [];
      await app.go('watch', { track: answer.id });
      app.say(`${answer.id}: ${Math.round(answer.length_m)} m of road, saved among your tracks.`);
      this.solve(app.track);
    } catch (error) {
      app.say(error.message, REFUSAL_MS);
    } finally {
      this.reading = null;
    }
    return null;
  }

  /** What is wrong with files before they are read, or null. */
  fault(files) {
    if (!this.app.server.connected) return WITHOUT_SERVER;
    if (this.reading) return `${this.reading} is still being read. Drop the next file after it.`;
    if (files.length !== 1) return `One file at a time: a track is one file, got ${files.length}.`;
    const [{ name, size }] = files;
    if (size <= MAX_MEGABYTES * 1e6) return null;
    return `${name} has ${Math.round(size / 1e6)} MB; a track file has at most ${MAX_MEGABYTES}. Cut out one circuit.`;
  }

  /** The optimal lap, told in Watch and put on the track when it is there. */
  async solve(track) {
    const { app } = this;
    if (!app.server.has('optimal')) return;
    const tell = (text) => app.views.watch.note(track, text);
    const known = (lap) => {
      putOptimum(track, lap);
      if (app.track === track) app.stage.renewPicture();
    };
    try {
      const solved = await solveOptimum(app.server, track.id, () => true, tell, known);
      if (!solved || app.track !== track) return;
      await app.refreshDrivers();
      if (app.view === 'watch' && !app.views.watch.replay) app.views.watch.list();
    } catch (error) {
      tell(error.message);
    }
  }
}
