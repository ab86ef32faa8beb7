// Track files: parsed for the engine, and as geometry for drawing.

import { buildGenerated, isLineOnly } from './daily_road.js';
import { parseHeader } from './engine.js';
import { buildOwn, hasOwn } from './own_tracks.js';
import { unpackFile } from './packed_file.js';

const cache = new Map();

/** The track with this id, loaded once; `isStatic`: there is no server that has all tracks. */
export function loadTrack(id, description, isStatic = false) {
  if (!cache.has(id)) {
    const track = hasOwn(id)
      ? buildOwn(id, description).then((buffer) => parseTrack(buffer, description))
      : fetchTrack(id, description, isStatic);
    track.catch(() => cache.delete(id));
    cache.set(id, track);
  }
  return cache.get(id);
}

async function fetchTrack(id, description, isStatic) {
  if (isStatic && (await isLineOnly(id))) return parseTrack(await buildGenerated(id, description), description);
  const answer = await fetch(`data/${encodeURIComponent(id)}.track`);
  if (!answer.ok) {
    const error = new Error('The track of this link is not here. Another one is shown.');
    throw Object.assign(error, { isUnknown: answer.status === 404 });
  }
  return parseTrack(await unpackFile(await answer.arrayBuffer()), description);
}

/** Keep a track that came another way than from its data file. */
export function keepTrack(track) {
  cache.set(track.id, Promise.resolve(track));
}

export function forgetTrack(id) {
  cache.delete(id);
}

/** A track file, see docs/web-api.md. */
export function parseTrack(buffer, description) {
  const { header, body } = parseHeader(buffer, 'HLT1');
  const { records } = description;
  if (header.physics !== description.physics) {
    throw new Error(`this track was written for physics ${header.physics}; the page has ${description.physics}.`);
  }
  let at = body;
  const take = (numBytes) => {
    at += numBytes;
    return new Uint8Array(buffer, at - numBytes, numBytes);
  };
  const track = {
    ...header,
    numNodes: header.num_nodes,
    numPortals: header.num_portals,
    records: {
      tracks: take(records.track.size),
      nodes: take(header.num_nodes * records.node.size),
      portals: take(header.num_portals * records.portal.size),
    },
  };
  const count = header.num_line_points;
  const column = () => new Float32Array(take(4 * count).slice().buffer);
  track.line = count ? { x: column(), y: column(), speed: column() } : null;
  Object.assign(track, geometry(track, records.node));
  return track;
}

/** Centre, edges and walls as columns, and the bounding box, in metres. */
function geometry(track, record) {
  const { numNodes } = track;
  const view = new DataView(track.records.nodes.buffer, track.records.nodes.byteOffset);
  const read = (name, k) => view.getFloat32(k * record.size + record.fields[name][1], true);
  const columns = () => ({ x: new Float32Array(numNodes), y: new Float32Array(numNodes) });
  const [centre, left, right, wallLeft, wallRight] = [columns(), columns(), columns(), columns(), columns()];
  const [tangentX, tangentY, curvature] = [0, 0, 0].map(() => new Float32Array(numNodes));
  const box = { x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
  for (let k = 0; k < numNodes; k += 1) {
    const [x, y, tx, ty] = ['x_m', 'y_m', 'tangent_x', 'tangent_y'].map((name) => read(name, k));
    const put = (line, m) => {
      line.x[k] = x - ty * m;
      line.y[k] = y + tx * m;
    };
    put(centre, 0);
    put(left, read('road_left_m', k));
    put(right, -read('road_right_m', k));
    put(wallLeft, read('wall_left_m', k));
    put(wallRight, -read('wall_right_m', k));
    tangentX[k] = tx;
    tangentY[k] = ty;
    curvature[k] = read('curvature_radpm', k);
    for (const wall of [wallLeft, wallRight]) {
      box.x0 = Math.min(box.x0, wall.x[k]);
      box.x1 = Math.max(box.x1, wall.x[k]);
      box.y0 = Math.min(box.y0, wall.y[k]);
      box.y1 = Math.max(box.y1, wall.y[k]);
    }
  }
  return {
    centre,
    left,
    right,
    wallLeft,
    wallRight,
    tangentX,
    tangentY,
    curvature,
    box,
    stepM: track.length_m / numNodes,
  };
}
