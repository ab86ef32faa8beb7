"""Who drives the cars of a race that do not learn: given drivers, and earlier versions of the policy (a league).

A driver keeps its car until the race ends. Drivers of the next races are drawn in main memory before each rollout; on
the device a race that ends takes them over, without a branch, so a rollout stays one CUDA graph.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.envs.spaces import ObservationName
from hotlap.errors import ConfigError, StateError
from hotlap.hyperparameters import RaceSettings
from hotlap.learning.frozen_policy import FrozenPolicy
from hotlap.models.model_file import ModelFile, PolicyArrays

STATE = "opponents."  # prefix of the columns in a saved state
LEAGUE_FLOOR = 0.1  # added to how often a version still wins, so that every one is met
FORGETTING = 2  # the counts of wins are divided by this whenever a version is kept
_SEED_PART = 0x0BB0  # sets these random numbers apart from others of the same seed


@dataclass(frozen=True)
class NamedDriver:
    """A driver of cars that do not learn, and the tracks it drives; None: all of them."""

    name: str
    model: ModelFile
    tracks: frozenset[int] | None = None


class Opponents:
    """The drivers of the cars that do not learn, each with its network on the device.

    Driver k < len(named) is a given one, the others are the league's. In race r the first `learners[r modulo …]` cars
    learn; the grid's order is drawn, so they start from any place.
    """

    def __init__(
        self,
        settings: RaceSettings,
        tracks: NDArray[np.int64],
        device: torch.device,
        named: Sequence[NamedDriver],
        learner: ModelFile | None,
    ) -> None:
        """`tracks` has the track of every race; `learner` is the policy's card with weights of the right shapes."""
        self._settings, self._device = settings, device
        num_races, num_cars = len(tracks), settings.num_cars
        counts = settings.learners or (num_cars,)
        seats = np.arange(num_cars)[None, :] < np.resize(counts, num_races)[:, None]
        rows = np.flatnonzero(~seats)
        self._learns = torch.as_tensor(seats, device=device)
        self.learners = torch.as_tensor(np.flatnonzero(seats), device=device)
        self._rows = torch.as_tensor(rows, device=device)
        self._row_tracks = np.repeat(tracks, num_cars)[rows]
        league = settings.league_size if learner is not None and len(rows) else 0
        self._num_named, self._num_drivers = len(named), len(named) + league
        self._drives = _who_drives(named, league, self._row_tracks)
        if len(rows) and not self._drives.any(0).all():
            raise ConfigError("race.opponents: on one of the tracks nobody drives the other cars. Give a league_size.")
        models = [driver.model for driver in named] + ([learner] if learner is not None else []) * league
        self._nets = [
            FrozenPolicy(model, torch.as_tensor(np.flatnonzero(may), device=device))
            for model, may in zip(models, self._drives, strict=True)
        ]
        # Of the running races, and of those that begin next: the driver, and how far the throttle goes.
        self._driver, self._next_driver = torch.zeros(2, len(rows), dtype=torch.int64, device=device)
        self._throttle, self._next_throttle = torch.ones(2, len(rows), device=device)
        # In how many pairs of a driver's car and a learner's that ended a race the driver's was ahead, and all pairs.
        self._counts = torch.zeros(2, self._num_drivers, dtype=torch.int64, device=device)
        self.begin(0)

    # --- on the device, within a rollout ---

    def drive(self, see: Callable[[ObservationName], Tensor], actions: Tensor) -> None:
        """Fill the actions of the cars that do not learn; `actions` has all cars, and what `see` returns too."""
        if not len(self._rows):
            return
        seen = {name: see(name)[self._rows] for name in sorted({net.observation for net in self._nets})}
        chosen = actions[self._rows]
        for number, net in enumerate(self._nets):
            own, is_own = seen[net.observation], self._driver[net.rows] == number
            if self._device.type == "cpu":
                rows = net.rows[is_own]
                chosen[rows] = net.act(own[rows])
            else:  # without a branch: all that it may drive
                chosen[net.rows] = torch.where(is_own[:, None], net.act(own[net.rows]), chosen[net.rows])
        chosen[:, 1] = torch.minimum(chosen[:, 1], self._throttle)
        actions.index_copy_(0, self._rows, chosen)

    def note(self, ended: Tensor, positions: Tensor) -> None:
        """Count who won the races that `ended` (races,) by `positions` (races, cars), and give their cars new drivers.

        Sums of integers have the same bits in any order.
        """
        if not len(self._rows):
            return
        against = (self._learns & ended[:, None])[:, None, :]
        ahead = (positions[:, :, None] < positions[:, None, :]) & against
        pairs = torch.stack([ahead.sum(2), against.expand_as(ahead).sum(2)]).flatten(1)[:, self._rows]
        is_driver = self._driver[:, None] == torch.arange(self._num_drivers, device=self._device)
        self._counts += (pairs[:, :, None] * is_driver).sum(1)
        over = ended[:, None].expand_as(self._learns).flatten()[self._rows]
        self._driver.copy_(torch.where(over, self._next_driver, self._driver))
        self._throttle.copy_(torch.where(over, self._next_throttle, self._throttle))

    # --- in main memory, between rollouts ---

    def begin(self, seed: int) -> None:
        """Draw the drivers of the first races."""
        self._rng = np.random.default_rng([seed, _SEED_PART])
        self._counts.zero_()
        self._next_version = self._settings.league_interval
        self._leaving = -1  # the league's version that is drawn no more, to make room for a new one
        self._has_versions = False  # before the first rollout the league is empty
        self._draw()
        self._driver.copy_(self._next_driver)
        self._throttle.copy_(self._next_throttle)

    def renew(self, num_timesteps: int, policy: Callable[[], PolicyArrays]) -> None:
        """Draw the drivers of the next races; where it is time, keep this version of the policy in the league."""
        if not len(self._rows):
            return
        if self._num_drivers > self._num_named:
            self._renew_league(num_timesteps, policy)
        self._draw()

    def _renew_league(self, num_timesteps: int, policy: Callable[[], PolicyArrays]) -> None:
        """A version leaves when no running race has it any more; then the present one takes its place.

        At first all versions are the policy that the run starts from.
        """
        if not self._has_versions:
            first = policy()
            for net in self._nets[self._num_named :]:
                net.load(first)
            self._has_versions = True
        if self._leaving < 0 and num_timesteps >= self._next_version:
            self._next_version += self._settings.league_interval
            self._leaving = self._num_named + int(np.argmin(self.win_rates()[self._num_named :]))
        if self._leaving >= 0 and not (self._driver == self._leaving).any():
            self._nets[self._leaving].load(policy())
            self._counts //= FORGETTING
            self._counts[:, self._leaving] = 0
            self._leaving = -1

    def win_rates(self) -> NDArray[np.float64]:
        """How often each driver's cars were ahead of a learner's; a half where they never met."""
        wins, pairs = self._counts.cpu().numpy()
        rates: NDArray[np.float64] = (wins + 1.0) / (pairs + 2.0)
        return rates

    def _draw(self) -> None:
        num_rows, settings, rng = len(self._rows), self._settings, self._rng
        if not num_rows:
            return
        weights = self._drives.astype(np.float64)  # (drivers, rows)
        league = slice(self._num_named, None)
        weights[league] *= (LEAGUE_FLOOR + self.win_rates()[league])[:, None]
        if self._leaving >= 0 and self._num_drivers > self._num_named + 1:
            weights[self._leaving] = 0.0
        for part, fraction in (
            (slice(0, self._num_named), 1.0 - settings.league_fraction),
            (league, settings.league_fraction),
        ):
            total = weights[part].sum(0)
            weights[part] *= fraction / np.where(total > 0.0, total, 1.0)
        bounds = np.cumsum(weights, 0)
        drawn = rng.random(num_rows) * bounds[-1]
        driver = np.minimum((drawn >= bounds).sum(0), self._num_drivers - 1)
        limits = settings.min_throttle + (1.0 - settings.min_throttle) * rng.random(num_rows)
        is_limited = (rng.random(num_rows) < 0.5) & (driver < self._num_named)
        throttle = np.where(is_limited, limits, 1.0).astype(np.float32)
        self._next_driver.copy_(torch.from_numpy(driver))
        self._next_throttle.copy_(torch.from_numpy(throttle))

    # --- state ---

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All that a bit-identical continuation needs."""
        state = {
            "driver": self._driver.cpu().numpy().copy(),
            "throttle": self._throttle.cpu().numpy().copy(),
            "counts": self._counts.cpu().numpy().copy(),
            "league": np.array([self._next_version, self._leaving, self._has_versions], np.int64),
            "generator": _generator_words(self._rng),
        }
        for number, net in enumerate(self._nets[self._num_named :]):
            state |= {f"version{number}.{name}": array for name, array in net.state_dict().items()}
        return {STATE + name: array for name, array in state.items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned; StateError if it does not fit."""
        own = {name.removeprefix(STATE): np.asarray(array) for name, array in state.items() if name.startswith(STATE)}
        expected = {name.removeprefix(STATE): array for name, array in self.state_dict().items()}
        for name, array in expected.items():
            if name not in own or own[name].shape != array.shape or own[name].dtype != array.dtype:
                raise StateError(f"state: column {STATE + name!r} must be {array.dtype} of shape {array.shape}.")
        if len(own["driver"]) and not ((own["driver"] >= 0) & (own["driver"] < self._num_drivers)).all():
            raise StateError(f"state: column '{STATE}driver' must be from 0 to {self._num_drivers - 1}.")
        self._driver.copy_(torch.from_numpy(own["driver"]))
        self._throttle.copy_(torch.from_numpy(own["throttle"]))
        self._counts.copy_(torch.from_numpy(own["counts"]))
        self._next_version, self._leaving, has_versions = (int(number) for number in own["league"])
        self._has_versions = has_versions != 0
        _set_generator_words(self._rng, own["generator"])
        for number, net in enumerate(self._nets[self._num_named :]):
            prefix = f"version{number}."
            net.load_state_dict({name.removeprefix(prefix): own[name] for name in own if name.startswith(prefix)})


def _who_drives(named: Sequence[NamedDriver], league: int, row_tracks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(drivers, rows): whether a driver may drive a car that does not learn."""
    found = np.ones((len(named) + league, len(row_tracks)), np.bool_)
    for number, driver in enumerate(named):
        if driver.tracks is not None:
            found[number] = np.isin(row_tracks, list(driver.tracks))
    return found


def _generator_words(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The state of a PCG64 generator, which is two numbers of 128 bits, as four words."""
    numbers = rng.bit_generator.state["state"]
    return np.frombuffer(b"".join(numbers[name].to_bytes(16, "little") for name in ("state", "inc")), "<u8")


def _set_generator_words(rng: np.random.Generator, words: NDArray[np.uint64]) -> None:
    state, inc = (int.from_bytes(part.tobytes(), "little") for part in (words[:2], words[2:]))
    rng.bit_generator.state = {**rng.bit_generator.state, "state": {"state": state, "inc": inc}, "has_uint32": 0}
