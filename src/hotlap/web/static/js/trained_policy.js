// What was learned in this tab as a policy: for the forward kernel, and as the bytes of a policy file.

const LOWEST = [-1, 0, 0];
const HIGHEST = [1, 1, 1];

/** The policy of a snapshot of the learner, as the kernel that drives takes it. */
export function trainedPolicy(learn, { weights, factors }, { physics, step, track }) {
  const { model, num_observations: numSeen, size } = learn;
  const array = (name) => {
    if (model.fixed[name]) {
      const [[rows, columns = 0], values] = model.fixed[name];
      return { rows, columns, at: (row, column) => values[columns ? row * columns + column : row] };
    }
    const [first, rows, columns] = model.places[name];
    return { rows, columns, at: (row, column) => weights[first + (columns ? row * size + column : row)] };
  };
  const numbers = [...factors, ...LOWEST, ...HIGHEST];
  const layers = [0, 2, 4].map((k) => `mlp_extractor.policy_net.${k}`).concat('action_net');
  const places = layers.map((layer) => {
    const [weight, bias] = [array(`${layer}.weight`), array(`${layer}.bias`)];
    const first = numbers.length;
    for (let input = 0; input < weight.columns; input += 1)
      for (let output = 0; output < weight.rows; output += 1) numbers.push(weight.at(output, input));
    const firstBias = numbers.length;
    for (let output = 0; output < bias.rows; output += 1) numbers.push(bias.at(output));
    return { num_inputs: weight.columns, num_outputs: weight.rows, first_weight: first, first_bias: firstBias };
  });
  return {
    physics,
    name: 'trained here',
    track,
    step,
    action_repeat: learn.action_repeat,
    num_observations: numSeen,
    num_stack: 1,
    num_fourier: 0,
    num_inputs: numSeen,
    activation: 0,
    is_squashed: false,
    clip: model.card.clip_obs,
    num_numbers: numbers.length,
    layers: places,
    numbers: Float32Array.from(numbers),
  };
}

/** The bytes of a policy file, see docs/web-api.md. */
export function policyBytes({ numbers, ...header }) {
  let text = JSON.stringify(header);
  text += ' '.repeat((4 - (new TextEncoder().encode(text).length % 4)) % 4);
  const head = new TextEncoder().encode(text);
  const bytes = new Uint8Array(8 + head.length + numbers.byteLength);
  bytes.set([...'HLP1'].map((letter) => letter.charCodeAt(0)));
  new DataView(bytes.buffer).setUint32(4, head.length, true);
  bytes.set(head, 8);
  bytes.set(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength), 8 + head.length);
  return bytes.buffer;
}
