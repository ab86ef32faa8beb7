"""The compiled PPO in Python: the learner of the page, natively, to the same bits."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.config import Range, check_ranges, setting
from hotlap.envs.settings import EpisodeRules, RacerSettings, RewardRules
from hotlap.errors import ConfigError, TrainingError
from hotlap.learning.compiled import entry_points
from hotlap.learning.compiled.layout import (
    NUM_GRADIENTS,
    NUM_PARTS,
    NUM_SEEN,
    NUM_TALLIES,
    RECIPE_DTYPE,
    SIZE,
    make_learner,
    make_part,
)
from hotlap.learning.compiled.rollout import SEED_SPACING
from hotlap.sim.batch_cpu import reset_cars
from hotlap.sim.engine import ALL_FINE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record

MAX_SEED = 2**53 - 1  # the largest that JavaScript counts to


def _racer() -> RacerSettings:
    """The rewards and episodes of the recipe racer-ppo."""
    return RacerSettings(
        RewardRules(penalty_min_speed_mps=8.0),
        EpisodeRules(max_ticks=720, stillness_timeout_ticks=60, start="random", spun_fraction=0.125),
    )


@dataclass(frozen=True)
class CompiledRecipe:
    """The settings of the compiled PPO, with its defaults those of the page."""

    num_cars: int = setting(256, "Cars of both parts; a multiple of 128.", Range(128, 4096))
    num_steps: int = setting(64, "Decisions of a car in a rollout.", Range(1, 128))
    num_epochs: int = setting(4, "Passes over a rollout.", Range(1, 100))
    batch_rows: int = setting(1024, "Decisions of a minibatch; a multiple of 128.", Range(128, 10**6))
    action_repeat: int = setting(4, "Ticks that an action is held.", Range(1, 60))
    gamma: float = setting(0.987, "Discount of a decision.", Range(0.0, 1.0))
    gae_lambda: float = setting(0.97, "Discount of generalized advantages.", Range(0.0, 1.0))
    clip_range: float = setting(0.2, "How far the ratio of probabilities counts.", Range(0.0, 1.0))
    learning_rate: float = setting(5e-4, "Adam's rate at the start.", Range(0.0, 1.0))
    desired_kl: float = setting(0.02, "The KL divergence of an update that the rate aims at.", Range(0.0, 1.0))
    max_grad_norm: float = setting(0.5, "Longer gradients are shortened to this.", Range(0.0, 1e6))
    value_weight: float = setting(0.5, "Weight of the values' loss.", Range(0.0, 1e6))
    clip_obs: float = setting(10.0, "Limit of normalized observations.", Range(0.0, 1e6))
    clip_reward: float = setting(10.0, "Limit of normalized rewards.", Range(0.0, 1e6))
    log_std_init: float = setting(-0.5, "Logarithm of the actions' first deviation.", Range(-5.0, 5.0))
    min_std: float = setting(0.1, "Least deviation of the actions.", Range(0.01, 1.0))
    racer: RacerSettings = field(default_factory=_racer)

    def __post_init__(self) -> None:
        check_ranges(self)
        unit = NUM_PARTS * SIZE
        if self.num_cars % unit or self.batch_rows % unit or self.num_cars * self.num_steps % self.batch_rows:
            raise ConfigError(
                f"recipe: num_cars and batch_rows must be multiples of {unit}, and batch_rows divide a rollout's "
                f"decisions, got {self.num_cars} cars, {self.num_steps} steps and {self.batch_rows} rows. Change them."
            )

    def record(self, seed: int) -> NDArray[np.void]:
        """The recipe as the kernels read it."""
        if not 0 <= seed <= MAX_SEED:
            raise ConfigError(f"seed: must be 0 to {MAX_SEED}, got {seed}. Choose another.")
        values = {name: value for name, value in vars(self).items() if name in (RECIPE_DTYPE.names or ())}
        values |= {"seed": seed, "num_cars": self.num_cars // NUM_PARTS, "batch_rows": self.batch_rows // NUM_PARTS}
        values["min_log_std"] = np.log(self.min_std)
        record = np.zeros(1, RECIPE_DTYPE)
        for name, value in values.items():
            record[name] = value
        return record

    @property
    def decisions_per_rollout(self) -> int:
        """Decisions of all cars."""
        return self.num_cars * self.num_steps


def first_seed(seed: int) -> np.uint64:
    """The seed of the first car."""
    return np.uint64(seed * SEED_SPACING % 2**64)


class CompiledPPO:
    """Learns to drive one road. With two threads each computes a part; the weights have the same bits as with one."""

    def __init__(self, ribbons: Ribbons, recipe: CompiledRecipe | None = None, *, seed: int, threads: int = 1) -> None:
        self.recipe = recipe or CompiledRecipe()
        self.seed, self.num_decisions = seed, 0
        self._record = self.recipe.record(seed)
        self.arrays, cars_per_part = make_learner(), self.recipe.num_cars // NUM_PARTS
        self._tallies = np.zeros((NUM_PARTS, NUM_TALLIES))
        self._gradients = np.zeros((NUM_PARTS, NUM_GRADIENTS), np.float32)
        # A part writes its row of these.
        self.parts = [
            make_part(cars_per_part, self.recipe.num_steps)._replace(tallies=tallies, gradients=gradients)
            for tallies, gradients in zip(self._tallies, self._gradients, strict=True)
        ]
        self._batches = [make_batch(cars_per_part, NUM_SEEN) for _ in range(NUM_PARTS)]
        self._world = ribbons, car_record(), self.recipe.racer.rules()
        self._pool = ThreadPoolExecutor(threads, "part") if threads > 1 else None
        entry_points.begin_learner(self._record, self.arrays)
        for index, batch in enumerate(self._batches):
            batch.states["seed"] = first_seed(seed) + np.arange(index * cars_per_part, (index + 1) * cars_per_part)
            reset_cars(np.ones(cars_per_part, np.bool_), *self._world, batch)

    @property
    def weights(self) -> NDArray[np.float32]:
        """All weights, as `layout` orders them."""
        return self.arrays.weights

    def figures(self) -> dict[str, float]:
        """Of the last update: KL divergence, clip fraction, value loss, and the multiple of the learning rate."""
        state = self.arrays.learner[0]
        return {name: float(state[name]) for name in ("kl", "clip_fraction", "value_loss", "lr_scale")}

    def learn(self) -> None:
        """One rollout, and an update of the weights; of the first rollout only the statistics are used."""
        recipe, learner, record = self.recipe, self.arrays, self._record
        self._on_parts(self._collect)
        self.num_decisions += recipe.decisions_per_rollout
        entry_points.merge(record, learner, self._tallies)
        if learner.learner["num_rollouts"][0] > 1:
            self._on_parts(lambda index: entry_points.judge(record, learner, self.parts[index]))
            self._on_parts(lambda index: entry_points.normalize(record, self.parts[index], self._tallies))
            for epoch in range(recipe.num_epochs):
                self._run_epoch(epoch)
        entry_points.finish(record, learner)

    def _run_epoch(self, epoch: int) -> None:
        recipe, learner, record = self.recipe, self.arrays, self._record
        self._on_parts(lambda index: entry_points.shuffle(record, index, learner, epoch, self.parts[index]))
        for number in range(recipe.decisions_per_rollout // recipe.batch_rows):
            self._on_parts(lambda index: entry_points.differentiate(record, learner, self.parts[index], number))  # noqa: B023
            entry_points.descend(record, learner, self._gradients, epoch == recipe.num_epochs - 1)

    def _collect(self, index: int) -> None:
        bad = entry_points.collect(
            self._record, index, *self._world, self._batches[index], self.arrays, self.parts[index]
        )
        if bad != ALL_FINE:
            raise TrainingError(
                f"training: the action of car {bad} is not finite. Use a smaller learning rate or another seed."
            )

    def _on_parts(self, work: Callable[[int], Any]) -> None:
        """Work on every part, in threads if there are some; none of them depends on another."""
        if self._pool is None:
            for index in range(NUM_PARTS):
                work(index)
        else:
            list(self._pool.map(work, range(NUM_PARTS)))


def warm_up() -> None:
    """Compile everything, or load it from the disk cache, before the first rollout."""
    record, arrays, part = np.zeros(1, RECIPE_DTYPE), make_learner(), make_part(0, 0)
    tallies, gradients = np.zeros((NUM_PARTS, NUM_TALLIES)), np.zeros((NUM_PARTS, NUM_GRADIENTS), np.float32)
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(8, NODE_DTYPE), np.zeros(8, PORTAL_DTYPE))
    world = ribbons, car_record(), CompiledRecipe().racer.rules()
    entry_points.begin_learner(record, arrays)
    entry_points.collect(record, 0, *world, make_batch(0, NUM_SEEN), arrays, part)
    entry_points.merge(record, arrays, tallies)
    entry_points.judge(record, arrays, part)
    entry_points.normalize(record, part, tallies)
    entry_points.shuffle(record, 0, arrays, 0, part)
    entry_points.differentiate(record, arrays, part, 0)
    entry_points.descend(record, arrays, gradients, True)
    entry_points.finish(record, arrays)
