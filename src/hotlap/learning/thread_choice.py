"""Whether a second thread is worth it for half of the work of a minibatch. The results have the same bits."""

import statistics


class ThreadChoice:
    """Measures the first minibatches, with and without a second thread by turns, and stays with what was faster.

    A thread is slower where minibatches are small, or where two cores of a virtual machine share one real core.
    """

    def __init__(self, *, is_possible: bool = True, num_trials: int = 96) -> None:
        self._num_trials = num_trials
        self._times_s: dict[bool, list[float]] = {True: [], False: []}
        self._is_better = None if is_possible else False

    def should_use(self) -> bool:
        """Whether to use a second thread for the next minibatch."""
        if self._is_better is None:
            return len(self._times_s[True]) <= len(self._times_s[False])
        return self._is_better

    def note(self, uses_thread: bool, elapsed_s: float) -> None:
        """Add how long a minibatch took."""
        if self._is_better is not None:
            return
        self._times_s[uses_thread].append(elapsed_s)
        if min(map(len, self._times_s.values())) >= self._num_trials:
            with_thread, without = (statistics.median(self._times_s[uses]) for uses in (True, False))
            self._is_better = with_thread < without
