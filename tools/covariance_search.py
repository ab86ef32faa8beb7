"""CMA-ES, a search for the least of a function without its gradient (Hansen's covariance matrix adaptation).

Candidates are drawn around a mean. The better half moves the mean, and the shape and size of the next cloud follow the
steps that paid. Only the order of the scores counts.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

DECOMPOSE_EVERY = 10  # tells; the shape changes little in between


class CovarianceSearch:
    """Ask for candidates, tell their scores, and again. `mean` is the best guess so far."""

    def __init__(self, size: int, population: int, spread: float, seed: int) -> None:
        self.mean: Vector = np.zeros(size)
        self.spread = spread
        self._rng = np.random.default_rng(seed)
        self._population = population
        ranks = np.arange(1, population // 2 + 1)
        weights = np.log(population / 2 + 0.5) - np.log(ranks)
        self._weights: Vector = weights / weights.sum()
        # The usual constants, from the size of the problem and the effective number of parents.
        parents = 1.0 / float((self._weights**2).sum())
        self._parents = parents
        self._path_rate = (4.0 + parents / size) / (size + 4.0 + 2.0 * parents / size)
        self._spread_rate = (parents + 2.0) / (size + parents + 5.0)
        self._one_rate = 2.0 / ((size + 1.3) ** 2 + parents)
        many = 2.0 * (parents - 2.0 + 1.0 / parents) / ((size + 2.0) ** 2 + parents)
        self._many_rate = min(1.0 - self._one_rate, many)
        self._damping = 1.0 + 2.0 * max(0.0, np.sqrt((parents - 1.0) / (size + 1.0)) - 1.0) + self._spread_rate
        self._usual_length = np.sqrt(size) * (1.0 - 1.0 / (4.0 * size) + 1.0 / (21.0 * size**2))
        self._covariance: Matrix = np.eye(size)
        self._axes: Matrix = np.eye(size)
        self._lengths: Vector = np.ones(size)
        self._path: Vector = np.zeros(size)
        self._spread_path: Vector = np.zeros(size)
        self._num_told = 0
        self._steps: Matrix = np.zeros((0, size))

    def ask(self) -> Matrix:
        """Candidates (population, size) around the mean."""
        normal = self._rng.standard_normal((self._population, self.mean.size))
        self._steps = (normal * self._lengths) @ self._axes.T
        return self.mean + self.spread * self._steps

    def tell(self, scores: Vector) -> None:
        """Learn from the scores of the candidates last asked for; less is better."""
        best = self._steps[np.argsort(scores, kind="stable")[: self._weights.size]]
        step = self._weights @ best
        self.mean = self.mean + self.spread * step
        self._num_told += 1
        is_long = self._adapt_spread(step)
        rate, one, many = self._path_rate, self._one_rate, self._many_rate
        self._path = (1.0 - rate) * self._path
        if not is_long:
            self._path = self._path + np.sqrt(rate * (2.0 - rate) * self._parents) * step
        kept = 1.0 - one - many + (one * rate * (2.0 - rate) if is_long else 0.0)
        self._covariance = (
            kept * self._covariance + one * np.outer(self._path, self._path) + many * (best.T * self._weights) @ best
        )
        if self._num_told % DECOMPOSE_EVERY == 0:
            self._decompose()

    def _adapt_spread(self, step: Vector) -> bool:
        """Widen the cloud if the last steps went one way, narrow it if they undid each other; true if it is far off."""
        rate = self._spread_rate
        whitened = self._axes @ ((self._axes.T @ step) / self._lengths)
        self._spread_path = (1.0 - rate) * self._spread_path + np.sqrt(rate * (2.0 - rate) * self._parents) * whitened
        length = float(np.linalg.norm(self._spread_path)) / self._usual_length
        self.spread *= float(np.exp(rate / self._damping * (length - 1.0)))
        grown = np.sqrt(1.0 - (1.0 - rate) ** (2 * self._num_told))
        return bool(length / grown >= 1.4 + 2.0 / (self.mean.size + 1.0))

    def _decompose(self) -> None:
        self._covariance = 0.5 * (self._covariance + self._covariance.T)
        squares, self._axes = np.linalg.eigh(self._covariance)
        self._lengths = np.sqrt(np.maximum(squares, 1e-12))
