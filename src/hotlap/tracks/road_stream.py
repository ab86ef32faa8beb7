"""The endless stream of generated roads: road number n of a run is a function of the run's seed and n."""

from hotlap.errors import TrackError
from hotlap.sim.ribbon import Ribbons
from hotlap.tracks.generation.circuit_generator import generate_circuit
from hotlap.tracks.registry import GENERATED, generated_track

# A node is a metre of road. Circuits are at most 7 km long before the generator bends their straights a little.
MAX_ROAD_NODES = 7168
MAX_ATTEMPTS = 16  # seeds of one road of the stream; hardly one in a hundred gives no road
_NUM_BITS = 40  # of a road's number and attempt within the seed of a circuit


def circuit_seed(run_seed: int, number: int, attempt: int) -> int:
    """The seed for `generate_circuit`: no two runs, roads or attempts share one, and none is below 2**32."""
    return ((1 + run_seed) << _NUM_BITS) + number * MAX_ATTEMPTS + attempt


def make_road(run_seed: int, number: int) -> Ribbons:
    """Road `number` of a run's stream in the simulator's format; seeds that give no road that fits are passed over."""
    for attempt in range(MAX_ATTEMPTS):
        try:
            track = generated_track(GENERATED, GENERATED, generate_circuit(circuit_seed(run_seed, number, attempt)))
        except TrackError:
            continue
        if track.nodes.num_nodes <= MAX_ROAD_NODES:
            return track.ribbon
    raise TrackError(f"no road for number {number} of seed {run_seed} in {MAX_ATTEMPTS} attempts. Use another seed.")
