// The colours of the canvas: the picture by day and by night, drivers, medals, speeds.

const DAY = {
  ground: '#7d9e57',
  groundSpeck: '#86a860',
  tree: '#41682f',
  treeLight: '#5b8740',
  shadow: 'rgba(20,38,10,.30)',
  runoff: '#b3a878',
  wall: '#e3e6e9',
  deck: '#8d9299',
  road: '#63676e',
  rubber: 'rgba(28,30,34,.17)',
  edge: '#f7f8f9',
  kerb: '#d2352c',
  skid: 'rgba(18,18,22,.34)',
  dust: '#d8c79a',
  smoke: '#f3f4f5',
  grid: 'rgba(255,255,255,.08)',
  hint: 'rgba(20,24,31,.55)',
};
const NIGHT = {
  ground: '#161d1c',
  groundSpeck: '#1b2523',
  tree: '#20322b',
  treeLight: '#294236',
  shadow: 'rgba(4,7,9,.45)',
  runoff: '#2a3b35',
  wall: '#8593a1',
  deck: '#565d66',
  road: '#434a54',
  rubber: 'rgba(20,24,31,.20)',
  edge: '#e8ecf0',
  kerb: '#d8433b',
  skid: 'rgba(12,14,18,.34)',
  dust: '#8d8468',
  smoke: '#c3cad1',
  grid: 'rgba(255,255,255,.07)',
  hint: 'rgba(238,241,244,.6)',
};

/** The picture's colours, by day at first, and those of charts and maps, which are always the same. */
export const COLOURS = {
  ...DAY,
  text: '#eef1f4',
  faint: '#93a0ad',
  accent: '#ffc640',
  optimum: '#b08cff',
  gain: '#3fbf72',
  loss: '#ff4b4b',
  background: '#14181f',
  badge: '#2b323c',
};

/** What differs around a road of a theme: by day, and by night. */
const THEMES = {
  harbour: {
    day: {
      ground: '#93a878',
      groundSpeck: '#9bb080',
      tree: '#4a7346',
      treeLight: '#6a9460',
      runoff: '#b9b4a6',
      dust: '#d9d2c0',
      water: '#4d8fb0',
      shore: '#d9cfae',
      building: '#b5544a',
      roof: '#c96d5f',
      concrete: '#a9abad',
    },
    night: { ground: '#151c20', groundSpeck: '#182127', water: '#0f2431', shore: '#2c3330', building: '#3d2a2a' },
  },
  aerodrome: {
    day: {
      ground: '#8aa65c',
      groundSpeck: '#93af64',
      tree: '#4c7034',
      treeLight: '#668c46',
      runoff: '#b6ad80',
      building: '#8f9aa5',
      roof: '#a9b4be',
      concrete: '#a3a49c',
    },
    night: { ground: '#171e19', groundSpeck: '#1b231d', building: '#343c45' },
  },
  ridge: {
    day: {
      ground: '#8c8f57',
      groundSpeck: '#97985f',
      tree: '#2f5238',
      treeLight: '#44694a',
      runoff: '#b89a6b',
      dust: '#cfae7d',
      rock: '#8d8779',
      rockLight: '#aaa494',
    },
    night: { ground: '#1b1c17', groundSpeck: '#20211b', tree: '#1a2b22', rock: '#35342f', rockLight: '#424139' },
  },
};
const FURTHER_NIGHT = { building: '#2d333b', roof: '#3a424c', concrete: '#3a3f44', rock: '#35342f' };
const look = { isNight: false, theme: 'harbour' };

/** Day or night in the picture, from the next time that it is drawn. */
export function setNight(isNight) {
  look.isNight = isNight;
  setLook();
}

/** The theme of the picture: harbour, aerodrome or ridge. */
export function setTheme(theme) {
  look.theme = theme;
  setLook();
}

function setLook() {
  const { day, night } = THEMES[look.theme];
  Object.assign(COLOURS, DAY, day);
  if (look.isNight) Object.assign(COLOURS, NIGHT, FURTHER_NIGHT, night);
}

export const MEDALS = { gold: '#ffc640', silver: '#c9d1d9', bronze: '#cd8a52' };
/** Slow to fast. */
export const SPEEDS = ['#ff4b4b', '#ff8f3f', '#ffd84a', '#5fe08a', '#3fc4ff'];
/** Of kinds of drivers. They differ in brightness too. */
export const KINDS = {
  human: '#ff8f3f',
  champion: '#ffc640',
  generalist: '#3fc4ff',
  rival: '#ff6fa8',
  casual: '#c9d1d9',
  optimal: '#b08cff',
  replay: '#5fe08a',
};
const FURTHER = ['#7fd4c1', '#e9a06b', '#9db8ff', '#d6e36a', '#e8b7d4', '#8fd18a', '#c7a17a', '#6fb7a8'];
const RECORDED = '#ff6fa8';

/** A driver's colour, the same wherever it is shown: of its kind, and for a model by its id. */
export function driverColour({ id, kind }) {
  if (id === 'recorded') return RECORDED;
  if (kind !== 'model') return KINDS[kind] || KINDS.replay;
  let sum = 0;
  for (const letter of id) sum = (31 * sum + letter.charCodeAt(0)) % 9973;
  return FURTHER[sum % FURTHER.length];
}

/** Index of a speed's colour. */
export function speedBand(speed, top) {
  return Math.max(0, Math.min(SPEEDS.length - 1, Math.floor((speed / top) * 1.15 * SPEEDS.length)));
}
