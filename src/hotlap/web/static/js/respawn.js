// Back to the last checkpoint, for a car that is stuck. No replay of inputs holds that, so the lap does not count.

import { writeField } from './wasm_memory.js';

const AT_REST = ['forward_mps', 'left_mps', 'yaw_radps', 'steer', 'throttle', 'brake', 'shift_n', 'share', 'lateral_m'];

/** Put a car on the middle of the road at the checkpoint it passed last, standing. */
export function respawn(world, car) {
  const { track, engine, read } = world;
  const gate = read.gate(car);
  const node = Math.round((gate * track.numNodes) / engine.numGates) % track.numNodes;
  const values = {
    ...Object.fromEntries(AT_REST.map((name) => [name, 0])),
    x_m: track.centre.x[node],
    y_m: track.centre.y[node],
    yaw_rad: Math.atan2(track.tangentY[node], track.tangentX[node]),
    node,
    arc_m: node * track.stepM,
    lap_spoiled: 1,
  };
  const { size, fields } = world.records.state;
  const view = new DataView(world.memory.buffer);
  for (const [name, value] of Object.entries(values)) {
    const [type, offset] = fields[name];
    writeField(view, type, world.at.states + car * size + offset, value);
  }
}
