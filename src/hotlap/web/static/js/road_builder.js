// A drawn line becomes a road in the page itself: checked by the rules of track import, and packed as the track file
// that a server would send, with the same road to the last bit.

import { speedProfile } from './casual_pilot.js';
import { guideLine } from './guide_line.js';
import { findCorners } from './road_corners.js';
import { findCrossings, findFault, narrowTightBends, trace } from './road_shape.js';
import { roundEven, Spline } from './road_spline.js';
import { buildWalls } from './road_walls.js';

const IMPORT_SPACING_M = 4;
const MIN_POINTS = 8;
const START_GRIP = 0.6;
const FAR_SPAN = 16;
const NEAR_SPAN = 4;
const SAME_POINT_M = 1e-3;
const FOLD_COSINE = Math.cos((150 * Math.PI) / 180);
const SPIKE_SINE = Math.sin((30 * Math.PI) / 180);
const DIGESTED = ['x', 'y', 'tx', 'ty', 'curvature', 'left', 'right'];

/** What is wrong with a drawing, or its road as a track file: {ok, fault} or {ok, length_m, buffer, line}. */
export async function buildDrawing({ points, width_m: width }, description, id = 'drawing') {
  const drawn = {
    x: points.map(([x]) => x),
    y: points.map(([, y]) => y),
    left: points.map(() => 0.5 * width),
    right: points.map(() => 0.5 * width),
  };
  const refuse = (fault) => ({ ok: false, fault });
  const fold = findFold(drawn);
  if (fold) return refuse(fold);
  const first = narrowTightBends(resample(drawn));
  const fixed = (values) => values.map((value) => Number(value.toFixed(3)));
  const line = { ...first, left: fixed(first.left), right: fixed(first.right) }; // as a file has them
  const about = { id, name: id, character: 'drawn', source: 'yours' };
  const answer = await packRoad(line, description, about);
  if (answer.ok) return answer;
  const { fault, road } = answer;
  return refuse({ point: road.fault ? null : nearest(drawn, road, fault.node), text: fault.text });
}

/** The road of a line with its widths as a track file: {ok, fault, road} or {ok, length_m, road, buffer, line}. */
export async function packRoad(line, description, about) {
  const road = trace(line);
  const crossings = road.fault ? [] : findCrossings(road.x, road.y);
  const fault = road.fault || findFault(road, crossings);
  if (fault) return { ok: false, fault, road };
  const built = buildWalls(road, crossings);
  const length = built.step * built.size;
  const header = {
    medals_sec: null,
    optimal_lap_time_sec: null,
    optimal_standing_lap_time_sec: null,
    attribution: null,
    ...about,
    length_m: Math.round(1000 * length) / 1000,
    road: await digest(built),
    physics: description.physics,
    num_nodes: built.size,
    num_portals: built.size + 2 * FAR_SPAN,
    num_line_points: 0,
    corners: findCorners(built),
  };
  return { ok: true, length_m: length, road: header.road, line, buffer: pack(built, header, description) };
}

/** Points about 4 m apart on the spline through the drawn ones, to a millimetre. */
function resample(line) {
  const spline = new Spline(line.x, line.y);
  const [, nodes] = spline.uniform(IMPORT_SPACING_M, MIN_POINTS);
  const fixed = (value) => roundEven(value * 1000) / 1000;
  const positions = nodes.map(([i, u]) => spline.position(i, u));
  return {
    x: positions.map(([x]) => fixed(x)),
    y: positions.map(([, y]) => fixed(y)),
    left: nodes.map(([i, u]) => fixed(spline.between(line.left, i, u))),
    right: nodes.map(([i, u]) => fixed(spline.between(line.right, i, u))),
  };
}

/** A point that repeats another, or where the line folds back or has a spike; null if there is none. */
function findFold({ x, y }) {
  const size = x.length;
  const at = (k) => (k + size) % size;
  const ahead = x.map((_, k) => [x[at(k + 1)] - x[k], y[at(k + 1)] - y[k]]);
  const same = ahead.findIndex(([dx, dy]) => Math.hypot(dx, dy) < SAME_POINT_M);
  if (same >= 0) return { point: at(same + 1), text: 'this point repeats the one before it. Delete it.' };
  const turns = ahead.map(([dx, dy], k) => {
    const [bx, by] = ahead[at(k - 1)];
    const lengths = Math.sqrt((dx * dx + dy * dy) * (bx * bx + by * by));
    return { cosine: (dx * bx + dy * by) / lengths, sine: (bx * dy - by * dx) / lengths };
  });
  const fold = turns.findIndex(({ cosine }) => cosine < FOLD_COSINE);
  const text = 'the line folds back by more than 150° at this point. Draw that bend wider, or delete the point.';
  if (fold >= 0) return { point: fold, text };
  const spike = turns.findIndex(({ cosine, sine }, k) => {
    const counter = [k + 1, k - 1].map((other) => -Math.sign(sine) * turns[at(other)].sine);
    return cosine < 0 && Math.min(...counter) > SPIKE_SINE;
  });
  return spike < 0 ? null : { point: spike, text: 'this point is a spike. Pull it back, or delete it.' };
}

/** The drawing's point that is nearest to a node. */
function nearest({ x, y }, road, node) {
  const apart = x.map((value, k) => (value - road.x[node]) ** 2 + (y[k] - road.y[node]) ** 2);
  return apart.indexOf(Math.min(...apart));
}

/** The road's digest, by which replays know it. */
async function digest(road) {
  const numbers = Float64Array.from(DIGESTED.flatMap((name) => road[name]));
  if (globalThis.crypto?.subtle) {
    const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', numbers.buffer));
    return [...bytes.subarray(0, 8)].map((one) => one.toString(16).padStart(2, '0')).join('');
  }
  // On a page that is not secure there is no SHA-256: a digest of its own does, as nobody else has this road.
  let [a, b] = [0x811c9dc5, 0x1b873593];
  for (const byte of new Uint8Array(numbers.buffer)) {
    a = Math.imul(a ^ byte, 0x01000193) >>> 0;
    b = Math.imul(b + byte, 0x85ebca6b) ^ (b >>> 13);
  }
  return [a, b >>> 0].map((one) => one.toString(16).padStart(8, '0')).join('');
}

/** The bytes of a track file, see docs/web-api.md. */
function pack(road, header, description) {
  const { records } = description;
  let text = JSON.stringify(header);
  text += ' '.repeat((4 - (new TextEncoder().encode(text).length % 4)) % 4);
  const head = new TextEncoder().encode(text);
  const sizes = [records.track.size, road.size * records.node.size, (road.size + 2 * FAR_SPAN) * records.portal.size];
  const first = 8 + head.length;
  const view = new DataView(new ArrayBuffer(first + sizes[0] + sizes[1] + sizes[2]));
  new Uint8Array(view.buffer).set([...'HLT1'].map((letter) => letter.charCodeAt(0)));
  view.setUint32(4, head.length, true);
  new Uint8Array(view.buffer).set(head, 8);
  const write = (record, at, values) => {
    for (const [name, value] of Object.entries(values)) {
      const [type, place] = records[record].fields[name];
      if (type === 'i4') view.setInt32(at + place, value, true);
      else view.setFloat32(at + place, value, true);
    }
  };
  write('track', first, {
    first_node: 0,
    first_portal: FAR_SPAN,
    num_nodes: road.size,
    step_m: road.step,
    length_m: road.step * road.size,
    widest_wall_m: Math.max(...road.wallLeft, ...road.wallRight),
  });
  const nodes = nodeValues(road, description);
  nodes.forEach((values, k) => write('node', first + sizes[0] + k * records.node.size, values));
  const portals = portalValues(nodes);
  for (let n = 0; n < road.size + 2 * FAR_SPAN; n += 1) {
    const values = portals[(n - FAR_SPAN + road.size) % road.size];
    write('portal', first + sizes[0] + sizes[1] + n * records.portal.size, values);
  }
  return view.buffer;
}

function nodeValues(road, { car }) {
  const { step: stepM, size: numNodes, curvature } = road;
  const speeds = speedProfile({ stepM, numNodes, curvature }, car, START_GRIP);
  const guide = guideLine(road, car);
  const single = Math.fround;
  return road.x.map((x, k) => ({
    x_m: single(x),
    y_m: single(road.y[k]),
    tangent_x: single(road.tx[k]),
    tangent_y: single(road.ty[k]),
    road_left_m: single(road.left[k]),
    road_right_m: single(road.right[k]),
    wall_left_m: single(road.wallLeft[k]),
    wall_right_m: single(road.wallRight[k]),
    curvature_radpm: single(road.curvature[k]),
    start_speed_mps: single(speeds[k]),
    guide_left_m: single(guide.leftM[k]),
    guide_mps: single(guide.progressMps[k]),
  }));
}

/** The wall points of every node, in float32, and how far the walls stray from straight lines between them. */
function portalValues(nodes) {
  const f = Math.fround;
  const portals = nodes.map((one) => ({
    left_x: f(one.x_m - f(one.tangent_y * one.wall_left_m)),
    left_y: f(one.y_m + f(one.tangent_x * one.wall_left_m)),
    right_x: f(one.x_m + f(one.tangent_y * one.wall_right_m)),
    right_y: f(one.y_m - f(one.tangent_x * one.wall_right_m)),
  }));
  return portals.map((one, k) => {
    const stray = (span) =>
      Math.max(...['left', 'right'].map((side) => findStray(portals, `${side}_x`, `${side}_y`, k, span)));
    return { ...one, far_stray_m: stray(FAR_SPAN), near_stray_m: stray(NEAR_SPAN) };
  });
}

/** Farthest that points k+1 to k+span-1 lie from the segment between points k and k+span. */
function findStray(portals, nameX, nameY, k, span) {
  const at = (n) => portals[(k + n) % portals.length];
  const [x0, y0] = [at(0)[nameX], at(0)[nameY]];
  const [dx, dy] = [at(span)[nameX] - x0, at(span)[nameY] - y0];
  const squared = dx * dx + dy * dy + 1e-12;
  let stray2 = 0;
  for (let n = 1; n < span; n += 1) {
    const [px, py] = [at(n)[nameX] - x0, at(n)[nameY] - y0];
    const fraction = Math.min(1, Math.max(0, (px * dx + py * dy) / squared));
    const [ex, ey] = [px - fraction * dx, py - fraction * dy];
    stray2 = Math.max(stray2, ex * ex + ey * ey);
  }
  return Math.sqrt(stray2) + 1e-3;
}
