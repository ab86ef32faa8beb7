"""Elo ratings of drivers from the order in which their cars came in."""

import numpy as np
from numpy.typing import NDArray

MEAN_ELO = 1500.0
_POINTS_PER_LOGIT = 400.0 / np.log(10.0)
# As many half wins against everybody are added, so that a driver who never lost has a finite rating.
_PRIOR = 0.5
_ROUNDS = 500


def fit_elo(wins: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratings that make `wins[i, j]`, how often driver i was ahead of driver j, most likely; their mean is 1500.

    Bradley and Terry's model, fitted by Hunter's iteration (Annals of Statistics 32, 2004).
    """
    num_drivers = len(wins)
    if num_drivers < 2:
        return np.full(num_drivers, MEAN_ELO)
    counted = wins + _PRIOR * (1.0 - np.eye(num_drivers))
    np.fill_diagonal(counted, 0.0)
    games, strength = counted + counted.T, np.ones(num_drivers)
    for _ in range(_ROUNDS):
        before = strength
        strength = counted.sum(axis=1) / (games / (strength[:, None] + strength)).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
        if np.allclose(strength, before, rtol=1e-10, atol=0.0):
            break
    ratings: NDArray[np.float64] = MEAN_ELO + _POINTS_PER_LOGIT * np.log(strength)
    return ratings


def elo_intervals(
    wins_by_race: NDArray[np.float64], num_samples: int = 200, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the ratings' 95 % intervals, by drawing races anew; `wins_by_race` is (races, drivers, drivers)."""
    rng = np.random.default_rng(seed)
    num_races = len(wins_by_race)
    draws = rng.multinomial(num_races, np.full(num_races, 1.0 / num_races), num_samples)
    ratings = np.stack([fit_elo(np.tensordot(draw, wins_by_race, axes=1)) for draw in draws])
    low, high = np.percentile(ratings, (2.5, 97.5), axis=0)
    return low, high
