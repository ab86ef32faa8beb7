"""PPO's update: the gradients of a minibatch of a part, and Adam's step with those of all parts."""

from math import sqrt

import numpy as np

from hotlap.learning.compiled.layout import (
    BLOCK,
    CLIPPED_SUM,
    KL_SUM,
    LOG_STD,
    NUM_AXES,
    NUM_GRADIENTS,
    NUM_PARTS,
    NUM_WEIGHTS,
    SIZE,
    VALUE_LOSS_SUM,
    U,
)
from hotlap.learning.compiled.networks import (
    AXIS_GAIN,
    POLICY,
    POLICY_OUTPUTS,
    VALUE,
    VALUE_OUTPUTS,
    backward,
    forward,
)
from hotlap.learning.compiled.normal import draw_word, exponential
from hotlap.learning.compiled.products import transpose
from hotlap.learning.schedules import LR_FACTOR, LR_SCALE_RANGE
from hotlap.sim.compilation import kernel
from hotlap.sim.maths import hyperbolic_tangent, limit

F = np.float32
ZERO, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
BETA_1, BETA_2 = F(0.9), F(0.999)
REST_1, REST_2 = F(1.0 - 0.9), F(1.0 - 0.999)
ADAM_EPS = F(1e-5)  # as in stable-baselines3's PPO
NORM_EPS = 1e-6
FACTOR = F(LR_FACTOR)
LOWEST_RATE, HIGHEST_RATE = F(LR_SCALE_RANGE[0]), F(LR_SCALE_RANGE[1])
ORDER_STREAM = 1 << 41  # no car has this number


@kernel
def shuffle_rows(recipe, part_index, learner, epoch, part):
    """A random order of the part's rows for an epoch (Fisher and Yates)."""
    num_rows = recipe.num_cars * recipe.num_steps
    stream = ORDER_STREAM + part_index
    first = (np.int64(learner.learner[0].num_rollouts) * recipe.num_epochs + epoch) * num_rows
    for k in range(num_rows):
        part.order[k] = k
    for k in range(num_rows - 1, 0, -1):
        other = np.int64(draw_word(recipe.seed, stream, first + k) % U(k + 1))
        part.order[k], part.order[other] = part.order[other], part.order[k]


@kernel
def gather_rows(part, first, rows):
    """The observations of 64 rows of the epoch's order."""
    for k in range(SIZE):
        source, target = part.order[first + k] * SIZE, k * SIZE
        for column in range(SIZE):
            rows[target + column] = part.observations[source + column]


@kernel
def by_policy(recipe, learner, part, first, outputs, by_outputs):
    """The gradient of the clipped loss by the policy's 64 outputs, and by the deviations; sums of KL and clipping."""
    weights, gradients = learner.weights, part.gradients
    num_rows, fraction = recipe.num_cars * recipe.num_steps, ONE / F(NUM_PARTS * recipe.batch_rows)
    log_std_0, log_std_1 = weights[LOG_STD], weights[LOG_STD + 1]
    inverse_0, inverse_1 = ONE / exponential(log_std_0), ONE / exponential(log_std_1)
    for k in range(SIZE):
        row = part.order[first + k]
        axis_0, axis_1 = hyperbolic_tangent(outputs[k]), hyperbolic_tangent(outputs[SIZE + k])
        noise_0 = (part.actions[row] - AXIS_GAIN * axis_0) * inverse_0
        noise_1 = (part.actions[num_rows + row] - AXIS_GAIN * axis_1) * inverse_1
        log_prob = -HALF * (noise_0 * noise_0 + noise_1 * noise_1) - (log_std_0 + log_std_1)
        log_ratio = log_prob - part.log_probs[row]
        ratio, advantage = exponential(log_ratio), part.advantages[row]
        free = ratio * advantage
        clipped = limit(ratio, ONE - recipe.clip_range, ONE + recipe.clip_range) * advantage
        # Where the clipped term is the smaller one, it is constant.
        by_log_prob = ZERO if free > clipped else -free * fraction
        by_outputs[k] = by_log_prob * noise_0 * inverse_0 * AXIS_GAIN * (ONE - axis_0 * axis_0)
        by_outputs[SIZE + k] = by_log_prob * noise_1 * inverse_1 * AXIS_GAIN * (ONE - axis_1 * axis_1)
        gradients[LOG_STD] += by_log_prob * (noise_0 * noise_0 - ONE)
        gradients[LOG_STD + 1] += by_log_prob * (noise_1 * noise_1 - ONE)
        gradients[KL_SUM] += ((ratio - ONE) - log_ratio) * fraction
        gradients[CLIPPED_SUM] += fraction if abs(ratio - ONE) > recipe.clip_range else ZERO


@kernel
def by_value(recipe, part, first, outputs, by_outputs):
    """The gradient of the squared error by the 64 values, and the sum of the errors."""
    fraction = ONE / F(NUM_PARTS * recipe.batch_rows)
    for k in range(SIZE):
        error = outputs[k] - part.targets[part.order[first + k]]
        by_outputs[k] = TWO * recipe.value_weight * fraction * error
        part.gradients[VALUE_LOSS_SUM] += error * error * fraction


@kernel
def compute_gradients(recipe, learner, part, batch_index):
    """The part's share of the gradients of a minibatch."""
    weights, gradients, work = learner.weights, part.gradients, part.work
    for k in range(U(NUM_GRADIENTS)):
        gradients[k] = ZERO
    rows, inputs = work[:BLOCK], work[BLOCK : 2 * BLOCK]
    hidden_1, hidden_2 = work[2 * BLOCK : 3 * BLOCK], work[3 * BLOCK : 4 * BLOCK]
    outputs, by_outputs = work[4 * BLOCK : 5 * BLOCK], work[5 * BLOCK : 6 * BLOCK]
    turned, by_2, by_1 = work[6 * BLOCK : 7 * BLOCK], work[7 * BLOCK : 8 * BLOCK], work[8 * BLOCK : 9 * BLOCK]
    for block in range(recipe.batch_rows // SIZE):
        first = batch_index * recipe.batch_rows + block * SIZE
        gather_rows(part, first, rows)
        transpose(rows, inputs)
        forward(weights, POLICY, POLICY_OUTPUTS, inputs, hidden_1, hidden_2, outputs)
        by_policy(recipe, learner, part, first, outputs, by_outputs)
        backward(weights, gradients, POLICY, POLICY_OUTPUTS, rows, hidden_1, hidden_2, by_outputs, turned, by_2, by_1)
        forward(weights, VALUE, VALUE_OUTPUTS, inputs, hidden_1, hidden_2, outputs)
        by_value(recipe, part, first, outputs, by_outputs)
        backward(weights, gradients, VALUE, VALUE_OUTPUTS, rows, hidden_1, hidden_2, by_outputs, turned, by_2, by_1)


@kernel
def find_norm(gradients):
    """The root of the sum of the squares, in eight sums."""
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = NUM_WEIGHTS // 8 * 8
    for k in range(0, whole, 8):
        s0 += np.float64(gradients[k]) * np.float64(gradients[k])
        s1 += np.float64(gradients[k + 1]) * np.float64(gradients[k + 1])
        s2 += np.float64(gradients[k + 2]) * np.float64(gradients[k + 2])
        s3 += np.float64(gradients[k + 3]) * np.float64(gradients[k + 3])
        s4 += np.float64(gradients[k + 4]) * np.float64(gradients[k + 4])
        s5 += np.float64(gradients[k + 5]) * np.float64(gradients[k + 5])
        s6 += np.float64(gradients[k + 6]) * np.float64(gradients[k + 6])
        s7 += np.float64(gradients[k + 7]) * np.float64(gradients[k + 7])
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for k in range(whole, NUM_WEIGHTS):
        total += np.float64(gradients[k]) * np.float64(gradients[k])
    return sqrt(total)


@kernel
def take_step(recipe, learner, gradients, is_last_epoch):
    """Adam's step with the sum of the parts' gradients (NUM_PARTS rows), which becomes the first row."""
    state, weights, moments = learner.learner[0], learner.weights, learner.moments
    total, other = gradients[0], gradients[1]
    for k in range(U(NUM_GRADIENTS)):
        total[k] += other[k]
    factor = F(min(np.float64(recipe.max_grad_norm) / (find_norm(total) + NORM_EPS), 1.0))
    state.beta1_power *= 0.9
    state.beta2_power *= 0.999
    rate = F(np.float64(recipe.learning_rate * state.lr_scale) / (1.0 - state.beta1_power))
    root = F(1.0 / sqrt(1.0 - state.beta2_power))
    means, squares = moments[:NUM_WEIGHTS], moments[NUM_WEIGHTS:]
    for k in range(U(NUM_WEIGHTS)):
        gradient = total[k] * factor
        means[k] = BETA_1 * means[k] + REST_1 * gradient
        squares[k] = BETA_2 * squares[k] + REST_2 * (gradient * gradient)
        weights[k] -= rate * means[k] / (sqrt(squares[k]) * root + ADAM_EPS)
    if is_last_epoch:
        state.kl += total[KL_SUM]
        state.clip_fraction += total[CLIPPED_SUM]
        state.value_loss += total[VALUE_LOSS_SUM]
        state.num_batches += 1


@kernel
def begin_figures(learner):
    """Forget the figures of the update before."""
    state = learner.learner[0]
    state.kl, state.clip_fraction, state.value_loss, state.num_batches = ZERO, ZERO, ZERO, 0


@kernel
def adapt(recipe, learner):
    """Adapt the learning rate to the KL divergence, and keep the deviations above their limit."""
    state, weights = learner.learner[0], learner.weights
    if state.num_batches > 0:
        count = F(state.num_batches)
        state.kl, state.clip_fraction, state.value_loss = (
            state.kl / count,
            state.clip_fraction / count,
            state.value_loss / count,
        )
        if state.kl > TWO * recipe.desired_kl:
            state.lr_scale = max(state.lr_scale / FACTOR, LOWEST_RATE)
        elif state.kl < HALF * recipe.desired_kl:
            state.lr_scale = min(state.lr_scale * FACTOR, HIGHEST_RATE)
        state.num_updates += 1
    for axis in range(NUM_AXES):
        weights[LOG_STD + axis] = max(weights[LOG_STD + axis], recipe.min_log_std)
