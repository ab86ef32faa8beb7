"""The endless stream of generated roads: road number n of a run is a function of the run's seed and n."""

from hotlap.sim.ribbon import Ribbons
from hotlap.tracks.registry import GENERATED, MAX_ATTEMPTS, generated_track

# A node is a metre of road. Circuits are at most 7 km long before the generator bends their straights a little.
MAX_ROAD_NODES = 7168
_NUM_BITS = 40  # of a road's number and attempt within the seed of a circuit


def circuit_seeds(run_seed: int, number: int) -> range:
    """The seeds for `generate_circuit`: no two runs or roads share one, and all are far above those of evaluations."""
    first = ((1 + run_seed) << _NUM_BITS) + number * MAX_ATTEMPTS
    return range(first, first + MAX_ATTEMPTS)


def make_road(run_seed: int, number: int) -> Ribbons:
    """Road `number` of a run's stream in the simulator's format, with its guide.

    Seeds that give no road that fits are passed over.
    """
    return generated_track(GENERATED, GENERATED, circuit_seeds(run_seed, number), MAX_ROAD_NODES).guided_ribbon
