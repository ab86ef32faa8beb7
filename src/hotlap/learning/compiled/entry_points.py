"""The compiled functions that the native learner calls; WebAssembly exports the same kernels under the same names.

There `begin_part` is added: in Python the simulator's own functions reset the cars.
"""

from pathlib import Path

from hotlap.learning.compiled.networks import draw_weights
from hotlap.learning.compiled.rollout import (
    ONE,
    collect_rollout,
    judge_rollout,
    merge_tallies,
    normalize_advantages,
    set_factors,
)
from hotlap.learning.compiled.update import adapt, begin_figures, compute_gradients, shuffle_rows, take_step
from hotlap.sim.compilation import entry_point, kernel

HERE = Path(__file__).parent


@kernel
def begin_all(recipe, learner):
    """Random weights, and everything else as before the first rollout; the arrays must be zero."""
    state = learner.learner[0]
    state.beta1_power, state.beta2_power, state.lr_scale = 1.0, 1.0, ONE
    draw_weights(recipe.seed, learner.weights, recipe.log_std_init)
    set_factors(learner)


@entry_point(HERE)
def begin_learner(recipe, learner):
    """Begin a learner."""
    begin_all(recipe[0], learner)


@entry_point(HERE)
def collect(recipe, part_index, ribbons, cars, rules, batch, learner, part):
    """Drive a rollout of a part; ALL_FINE, or a car whose action is not finite."""
    return collect_rollout(recipe[0], part_index, ribbons, cars, rules, batch, learner, part)


@entry_point(HERE)
def merge(recipe, learner, tallies):
    """Add the tallies (num_parts, NUM_TALLIES) of a rollout to the statistics."""
    merge_tallies(recipe[0], learner, tallies)
    begin_figures(learner)


@entry_point(HERE)
def judge(recipe, learner, part):
    """Values and advantages of a part's rollout."""
    judge_rollout(recipe[0], learner, part)


@entry_point(HERE)
def normalize(recipe, part, tallies):
    """Normalize a part's advantages by the tallies (num_parts, NUM_TALLIES) of all parts."""
    normalize_advantages(recipe[0], part, tallies)


@entry_point(HERE)
def shuffle(recipe, part_index, learner, epoch, part):
    """The order of a part's rows in an epoch."""
    shuffle_rows(recipe[0], part_index, learner, epoch, part)


@entry_point(HERE)
def differentiate(recipe, learner, part, batch_index):
    """A part's share of the gradients of a minibatch."""
    compute_gradients(recipe[0], learner, part, batch_index)


@entry_point(HERE)
def descend(recipe, learner, gradients, is_last_epoch):
    """Adam's step with the parts' gradients (num_parts, NUM_GRADIENTS)."""
    take_step(recipe[0], learner, gradients, is_last_epoch)


@entry_point(HERE)
def finish(recipe, learner):
    """What follows the last minibatch, or the first rollout, of which only the statistics are used."""
    adapt(recipe[0], learner)
    set_factors(learner)
