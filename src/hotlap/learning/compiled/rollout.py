"""A rollout of a part of the cars: they decide with noise and drive, then their decisions are judged."""

from math import sqrt

import numpy as np

from hotlap.learning.compiled.layout import (
    ADVANTAGE_SQUARES,
    ADVANTAGE_SUM,
    BLOCK,
    LOG_STD,
    NUM_PARTS,
    NUM_SEEN,
    RETURN_COUNT,
    RETURN_SQUARES,
    RETURN_SUM,
    REWARD_SUM,
    SEEN_COUNT,
    SEEN_SQUARES,
    SEEN_SUMS,
    SIZE,
)
from hotlap.learning.compiled.networks import AXIS_GAIN, POLICY, POLICY_OUTPUTS, VALUE, VALUE_OUTPUTS, forward
from hotlap.learning.compiled.normal import exponential, normal
from hotlap.learning.compiled.products import transpose
from hotlap.models.actor_layers import VARIANCE_FLOOR
from hotlap.sim.batch_cpu import find_bad_action
from hotlap.sim.compilation import kernel
from hotlap.sim.engine import ALL_FINE
from hotlap.sim.maths import hyperbolic_tangent, limit
from hotlap.sim.step import reset_car, step_car

F = np.float32
ZERO, HALF, ONE = F(0.0), F(0.5), F(1.0)
SEED_SPACING = 1_000_003  # so that the cars of different seeds have different seeds


@kernel
def begin_cars(recipe, part_index, ribbons, cars, rules, batch, part):
    """Start the cars of a part, each with a seed of its own."""
    for car in range(recipe.num_cars):
        number = np.uint64(part_index * recipe.num_cars + car)
        batch.states[car].seed = recipe.seed * np.uint64(SEED_SPACING) + number
        batch.states[car].episode = 0
        part.running[car] = ZERO
        reset_car(car, ribbons, cars, rules, batch)


@kernel
def set_factors(learner):
    """What observations are normalized with, of the statistics up to now, as `actor.pack_model` computes it."""
    statistics, factors = learner.statistics, learner.factors
    count = statistics[SEEN_COUNT]
    for k in range(NUM_SEEN):
        if count > 0.0:
            mean = statistics[SEEN_SUMS + k] / count
            variance = max(statistics[SEEN_SQUARES + k] / count - mean * mean, 0.0)
            factors[k] = F(mean)
            factors[NUM_SEEN + k] = F(mean - np.float64(factors[k]))
            factors[2 * NUM_SEEN + k] = F(1.0 / sqrt(variance + VARIANCE_FLOOR))
        else:
            factors[k], factors[NUM_SEEN + k], factors[2 * NUM_SEEN + k] = ZERO, ZERO, ONE


@kernel
def put_row(factors, clip, obs, rows, row):
    """Normalize an observation into a row; its last columns stay zero."""
    first = row * SIZE
    for k in range(NUM_SEEN):
        value = ((obs[k] - factors[k]) - factors[NUM_SEEN + k]) * factors[2 * NUM_SEEN + k]
        rows[first + k] = limit(value, -clip, clip)


@kernel
def tally_observation(obs, tallies):
    """Add an observation to the tallies."""
    tallies[SEEN_COUNT] += 1.0
    for k in range(NUM_SEEN):
        value = np.float64(obs[k])
        tallies[SEEN_SUMS + k] += value
        tallies[SEEN_SQUARES + k] += value * value


@kernel
def decide_block(recipe, decision, first_car, row, learner, part, stream):
    """Noisy actions of 64 cars whose observations begin at a row; `stream` is the first car's among all cars."""
    work, weights = part.work, learner.weights
    inputs, hidden_1, hidden_2 = work[:BLOCK], work[BLOCK : 2 * BLOCK], work[2 * BLOCK : 3 * BLOCK]
    outputs = work[3 * BLOCK : 4 * BLOCK]
    transpose(part.observations[row * SIZE : row * SIZE + BLOCK], inputs)
    forward(weights, POLICY, POLICY_OUTPUTS, inputs, hidden_1, hidden_2, outputs)
    num_rows = recipe.num_cars * recipe.num_steps
    log_std_0, log_std_1 = weights[LOG_STD], weights[LOG_STD + 1]
    std_0, std_1 = exponential(log_std_0), exponential(log_std_1)
    for k in range(SIZE):
        noise_0 = normal(recipe.seed, stream + k, 2 * decision)
        noise_1 = normal(recipe.seed, stream + k, 2 * decision + 1)
        steer = AXIS_GAIN * hyperbolic_tangent(outputs[k]) + std_0 * noise_0
        pedal = AXIS_GAIN * hyperbolic_tangent(outputs[SIZE + k]) + std_1 * noise_1
        part.actions[row + k], part.actions[num_rows + row + k] = steer, pedal
        squares = noise_0 * noise_0 + noise_1 * noise_1
        part.log_probs[row + k] = -HALF * squares - (log_std_0 + log_std_1)
        wanted = part.wanted[first_car + k]
        wanted[0], wanted[1], wanted[2] = limit(steer, -ONE, ONE), limit(pedal, ZERO, ONE), limit(-pedal, ZERO, ONE)


@kernel
def record_step(recipe, row, car, factors, batch, part):
    """Keep a decision's reward, whether its episode ended, and what the car saw where the time limit ended it."""
    reward, tallies = batch.rewards[car], part.tallies
    has_ended = batch.terminated[car] or batch.truncated[car]
    part.rewards[row], part.continues[row] = reward, ZERO if has_ended else ONE
    part.running[car] = recipe.gamma * part.running[car] + reward
    running = np.float64(part.running[car])
    tallies[RETURN_COUNT] += 1.0
    tallies[RETURN_SUM] += running
    tallies[RETURN_SQUARES] += running * running
    tallies[REWARD_SUM] += np.float64(reward)
    if has_ended:
        part.running[car] = ZERO
    count = part.cut_count[0]
    if has_ended and not batch.terminated[car] and count < recipe.num_cars:
        put_row(factors, recipe.clip_obs, batch.final_obs[car], part.cut_observations, count)
        part.cut_rows[count] = row
        part.cut_count[0] = count + 1


@kernel
def collect_rollout(recipe, part_index, ribbons, cars, rules, batch, learner, part):
    """Drive a rollout; returns ALL_FINE, or a car whose action is not finite."""
    factors, num_cars = learner.factors, recipe.num_cars
    part.cut_count[0] = 0
    for k in range(part.tallies.shape[0]):
        part.tallies[k] = 0.0
    for step in range(recipe.num_steps + 1):
        first_row, is_last = step * num_cars, step == recipe.num_steps
        for car in range(num_cars):
            put_row(factors, recipe.clip_obs, batch.obs[car], part.observations, first_row + car)
            if not is_last:
                tally_observation(batch.obs[car], part.tallies)
        if is_last:
            break
        decision = learner.learner[0].num_rollouts * recipe.num_steps + step
        for car in range(0, num_cars, SIZE):
            stream = part_index * num_cars + car
            decide_block(recipe, decision, car, first_row + car, learner, part, stream)
        bad = find_bad_action(part.wanted)
        if bad != ALL_FINE:
            return bad
        for car in range(num_cars):
            step_car(car, part.wanted, ribbons, cars, rules, batch, True, recipe.action_repeat)
            record_step(recipe, first_row + car, car, factors, batch, part)
    return ALL_FINE


@kernel
def merge_tallies(recipe, learner, tallies):
    """Add the tallies of all parts (NUM_PARTS rows) to the statistics, and scale rewards by those of the returns."""
    statistics, state = learner.statistics, learner.learner[0]
    for k in range(statistics.shape[0]):
        for part in range(NUM_PARTS):
            statistics[k] += tallies[part, k]
    count = statistics[RETURN_COUNT]
    mean = statistics[RETURN_SUM] / count
    variance = max(statistics[RETURN_SQUARES] / count - mean * mean, 0.0)
    state.reward_scale = F(1.0 / sqrt(variance + VARIANCE_FLOOR))
    state.num_rollouts += 1


@kernel
def evaluate_rows(weights, observations, first_row, values, part):
    """The values of 64 rows of observations."""
    work = part.work
    inputs, hidden_1, hidden_2 = work[:BLOCK], work[BLOCK : 2 * BLOCK], work[2 * BLOCK : 3 * BLOCK]
    outputs = work[3 * BLOCK : 4 * BLOCK]
    transpose(observations[first_row * SIZE : first_row * SIZE + BLOCK], inputs)
    forward(weights, VALUE, VALUE_OUTPUTS, inputs, hidden_1, hidden_2, outputs)
    for k in range(SIZE):
        values[first_row + k] = outputs[k]


@kernel
def judge_rollout(recipe, learner, part):
    """Values of everything seen, and generalized advantages; their sums are tallied."""
    num_cars, num_rows = recipe.num_cars, recipe.num_cars * recipe.num_steps
    weights, scale, clip = learner.weights, learner.learner[0].reward_scale, recipe.clip_reward
    for row in range(num_rows):
        part.rewards[row] = limit(part.rewards[row] * scale, -clip, clip)
    cut_values = part.work[4 * BLOCK :]
    for first in range(0, part.cut_count[0], SIZE):
        evaluate_rows(weights, part.cut_observations, first, cut_values, part)
    for k in range(part.cut_count[0]):
        part.rewards[part.cut_rows[k]] += recipe.gamma * cut_values[k]
    for first in range(0, num_rows + num_cars, SIZE):
        evaluate_rows(weights, part.observations, first, part.values, part)
    decay = recipe.gamma * recipe.gae_lambda
    total, squares = 0.0, 0.0
    for step in range(recipe.num_steps - 1, -1, -1):
        for car in range(num_cars):
            row = step * num_cars + car
            following = row + num_cars
            goes_on = part.continues[row]
            error = (part.rewards[row] + recipe.gamma * goes_on * part.values[following]) - part.values[row]
            later = part.advantages[following] if step < recipe.num_steps - 1 else ZERO
            advantage = error + decay * goes_on * later
            part.advantages[row] = advantage
            part.targets[row] = advantage + part.values[row]
            total += np.float64(advantage)
            squares += np.float64(advantage) * np.float64(advantage)
    part.tallies[ADVANTAGE_SUM], part.tallies[ADVANTAGE_SQUARES] = total, squares


@kernel
def normalize_advantages(recipe, part, tallies):
    """Bring the advantages to mean 0 and deviation 1 over all parts."""
    num_rows = recipe.num_cars * recipe.num_steps
    total, squares = 0.0, 0.0
    for index in range(NUM_PARTS):
        total += tallies[index, ADVANTAGE_SUM]
        squares += tallies[index, ADVANTAGE_SQUARES]
    mean = total / np.float64(NUM_PARTS * num_rows)
    deviation = sqrt(max(squares / np.float64(NUM_PARTS * num_rows) - mean * mean, 0.0))
    shift, inverse = F(mean), F(1.0 / (deviation + VARIANCE_FLOOR))
    for row in range(num_rows):
        part.advantages[row] = (part.advantages[row] - shift) * inverse
