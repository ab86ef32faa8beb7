"""Sizes and records of the compiled PPO: networks of a fixed shape, the recipe, and all arrays a learner works on.

Both networks have two hidden layers of 64 units behind the observation `road`, padded to 64 columns. Compilers know
every size, so they unroll the products and work on several rows at once, which changes no bit.

The cars are divided into two parts. Whoever works on a part needs of the other one only its tallies and gradients, and
sums always have the same order. So two workers compute the same bits as one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.spaces import num_observations
from hotlap.models.model_file import NUM_PEDAL_AXES

U = np.uint64  # unsigned indices: numba skips its check for negative ones

NUM_PARTS = 2
NUM_SEEN = num_observations("road")
NUM_AXES = NUM_PEDAL_AXES  # steering, and throttle against brake
SIZE = 64  # rows of a block, units of a layer, and columns of a row
BLOCK = SIZE * SIZE

# Where the numbers of a network lie after its first one. Weights are (outputs, inputs).
BIAS_1, WEIGHT_2, BIAS_2, WEIGHT_3 = BLOCK, BLOCK + SIZE, 2 * BLOCK + SIZE, 2 * BLOCK + 2 * SIZE
POLICY_NUMBERS = WEIGHT_3 + NUM_AXES * SIZE + NUM_AXES
VALUE_NUMBERS = WEIGHT_3 + SIZE + 1
FIRST_VALUE = POLICY_NUMBERS
LOG_STD = POLICY_NUMBERS + VALUE_NUMBERS
NUM_WEIGHTS = LOG_STD + NUM_AXES

# After the gradients of a minibatch follow its sums of these.
KL_SUM, CLIPPED_SUM, VALUE_LOSS_SUM = range(NUM_WEIGHTS, NUM_WEIGHTS + 3)
NUM_GRADIENTS = NUM_WEIGHTS + 3

# The tallies of a part's rollout, and the statistics, which are their sums over all rollouts.
SEEN_COUNT, SEEN_SUMS = 0, 1
SEEN_SQUARES = SEEN_SUMS + NUM_SEEN
RETURN_COUNT = SEEN_SQUARES + NUM_SEEN
RETURN_SUM, RETURN_SQUARES, REWARD_SUM, ADVANTAGE_SUM, ADVANTAGE_SQUARES, NUM_TALLIES = range(
    RETURN_COUNT + 1, RETURN_COUNT + 7
)

# A block's inputs by row and by column, activations of both hidden layers and of the output, and what flows back.
NUM_WORK = 9 * BLOCK

RECIPE_DTYPE = np.dtype(
    [
        ("seed", np.uint64),
        ("num_cars", np.int32),  # of a part; a multiple of 64
        ("num_steps", np.int32),  # decisions of a car in a rollout
        ("num_epochs", np.int32),
        ("batch_rows", np.int32),  # of a minibatch and a part; a multiple of 64 that divides the rows
        ("action_repeat", np.int32),
        ("gamma", np.float32),
        ("gae_lambda", np.float32),
        ("clip_range", np.float32),
        ("learning_rate", np.float32),
        ("desired_kl", np.float32),
        ("max_grad_norm", np.float32),
        ("value_weight", np.float32),
        ("clip_obs", np.float32),
        ("clip_reward", np.float32),
        ("log_std_init", np.float32),
        ("min_log_std", np.float32),
    ],
    align=True,
)

LEARNER_DTYPE = np.dtype(
    [
        ("beta1_power", np.float64),
        ("beta2_power", np.float64),
        ("num_updates", np.int32),
        ("num_rollouts", np.int32),
        ("lr_scale", np.float32),
        ("reward_scale", np.float32),
        ("kl", np.float32),  # of the last epoch
        ("clip_fraction", np.float32),
        ("value_loss", np.float32),
        ("num_batches", np.int32),  # that the three figures are sums of
    ],
    align=True,
)


class LearnerArrays(NamedTuple):
    """What all parts know: the same in each worker."""

    learner: NDArray[np.void]  # (1,) LEARNER_DTYPE
    weights: NDArray[np.float32]
    moments: NDArray[np.float32]  # Adam's means, then its squares
    statistics: NDArray[np.float64]
    factors: NDArray[np.float32]  # mean in two parts and inverse deviation of every column, as `policy_forward` has it


class PartArrays(NamedTuple):
    """The rollout of a part of the cars: rows of decisions, step by step, and in each step car by car."""

    observations: NDArray[np.float32]  # normalized, 64 columns; one step more than decisions
    actions: NDArray[np.float32]  # of the first axis, then of the second; not clipped
    log_probs: NDArray[np.float32]
    rewards: NDArray[np.float32]
    continues: NDArray[np.float32]  # 0 where the episode ended, else 1
    values: NDArray[np.float32]  # one step more
    advantages: NDArray[np.float32]
    targets: NDArray[np.float32]  # of the values
    running: NDArray[np.float32]  # discounted return of each car up to now
    cut_observations: NDArray[np.float32]  # the last ones of episodes that the time limit ended
    cut_rows: NDArray[np.int32]
    cut_count: NDArray[np.int32]  # (1,)
    order: NDArray[np.int32]  # of the rows in an epoch
    tallies: NDArray[np.float64]
    gradients: NDArray[np.float32]
    wanted: NDArray[np.float32]  # (num_cars, 3): the cars' actions
    work: NDArray[np.float32]


def make_learner() -> LearnerArrays:
    """The arrays of a learner, all zero."""
    return LearnerArrays(
        np.zeros(1, LEARNER_DTYPE),
        np.zeros(NUM_WEIGHTS, np.float32),
        np.zeros(2 * NUM_WEIGHTS, np.float32),
        np.zeros(NUM_TALLIES, np.float64),
        np.zeros(3 * NUM_SEEN, np.float32),
    )


def make_part(num_cars: int, num_steps: int) -> PartArrays:
    """The arrays of a part, all zero."""
    num_rows = num_cars * num_steps

    def floats(count: int) -> NDArray[np.float32]:
        return np.zeros(count, np.float32)

    return PartArrays(
        observations=floats((num_rows + num_cars) * SIZE),
        actions=floats(NUM_AXES * num_rows),
        log_probs=floats(num_rows),
        rewards=floats(num_rows),
        continues=floats(num_rows),
        values=floats(num_rows + num_cars),
        advantages=floats(num_rows),
        targets=floats(num_rows),
        running=floats(num_cars),
        cut_observations=floats(num_cars * SIZE),
        cut_rows=np.zeros(num_cars, np.int32),
        cut_count=np.zeros(1, np.int32),
        order=np.zeros(num_rows, np.int32),
        tallies=np.zeros(NUM_TALLIES, np.float64),
        gradients=floats(NUM_GRADIENTS),
        wanted=np.zeros((num_cars, 3), np.float32),
        work=floats(NUM_WORK),
    )
