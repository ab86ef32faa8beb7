"""The CUDA engine for batches in main memory."""

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.batch_cuda import CudaCars
from hotlap.sim.engine import ALL_FINE, Scenario
from hotlap.sim.step import Batch, make_batch
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS


class CudaEngine:
    """An engine for batches in main memory: each call copies the states to the GPU and the results back.

    It is slow for few cars. It serves to compare the GPU with the CPU, and wherever any engine will do.
    """

    def __init__(self) -> None:
        self._cars: CudaCars | None = None
        self._scenario: Scenario | None = None

    def make_batch(self, num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> Batch:
        """Room for `num_cars` cars, all zero."""
        return make_batch(num_cars, num_observations)

    def reset(self, mask: NDArray[np.bool_], scenario: Scenario, batch: Batch) -> None:
        """Begin an episode for every car in `mask`."""
        cars = self._upload(scenario, batch)
        cars.batch.infos.copy_to_device(batch.infos)  # type: ignore[attr-defined]
        cars.reset(mask)
        _download(cars, scenario, batch)

    def step(
        self, actions: NDArray[np.float32], scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int
    ) -> int:
        """Up to `repeat` ticks with one action for every car; ALL_FINE, or the first car with a bad action."""
        cars = self._upload(scenario, batch)
        cars.actions.copy_to_device(np.ascontiguousarray(actions))
        cars.step(autoreset=autoreset, repeat=repeat)
        bad_car = cars.find_bad_car()
        if bad_car == ALL_FINE:
            _download(cars, scenario, batch)
            if actions.shape[1] > NUM_ACTIONS:
                actions[:] = cars.actions.copy_to_host()
        return bad_car

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        """Fill the observations of every car from its state."""
        cars = self._upload(scenario, batch)
        cars.reset(np.zeros(cars.num_cars, np.bool_))
        batch.obs[:] = cars.batch.obs.copy_to_host()  # type: ignore[attr-defined]
        _download_records(cars, scenario)

    def _upload(self, scenario: Scenario, batch: Batch) -> CudaCars:
        """The cars on the GPU, with the states of `batch`; recreated for other tracks or another number of cars."""
        known = self._scenario
        is_same = (
            known is not None
            and known.ribbons is scenario.ribbons
            and known.cars is scenario.cars
            and known.rules["delay_high_ticks"][0] == scenario.rules["delay_high_ticks"][0]
        )
        num_cars, num_observations = batch.obs.shape
        if (
            self._cars is None
            or not is_same
            or (self._cars.num_cars, self._cars.num_observations) != (num_cars, num_observations)
        ):
            self._cars = CudaCars(scenario, num_cars, num_observations)
        self._scenario = scenario
        self._cars.set_rules(scenario.rules)
        self._cars.upload(batch.states)
        if len(scenario.cars) > 1:
            self._cars.upload_records(scenario.cars)
        return self._cars


def _download(cars: CudaCars, scenario: Scenario, batch: Batch) -> None:
    """Copy what the GPU computed into a batch in main memory, and the records of cars that differ."""
    for source, target in zip(cars.batch, batch, strict=True):
        target[:] = source.copy_to_host()  # type: ignore[attr-defined]
    _download_records(cars, scenario)


def _download_records(cars: CudaCars, scenario: Scenario) -> None:
    if len(scenario.cars) > 1:
        scenario.cars[:] = cars.download_records()
