"""`Fleet`: N cars in the compiled simulator, on which the single and the batched environment are built."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.config import Range, check_count
from hotlap.envs.settings import RacerSettings, start_code
from hotlap.envs.spaces import DEFAULT_OBSERVATION, SEE_GUIDE, ObservationName, num_observations
from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.sim.batch_cpu import CpuEngine, default_threads
from hotlap.sim.domain import make_actions
from hotlap.sim.engine import ALL_FINE, Engine, Scenario
from hotlap.sim.ribbon import Ribbons
from hotlap.sim.world import NUM_ACTIONS, STATE_DTYPE
from hotlap.tracks.registry import Track, find_entries, load_tracks

FleetState = dict[str, NDArray[Any]]

MAX_CARS = 1 << 20
MAX_REPEAT = 60  # ticks: one second with one action
NUM_CARS, REPEATS = Range(1, MAX_CARS), Range(1, MAX_REPEAT)
# Waking a thread costs about as much as stepping some dozens of cars.
MIN_CARS_PER_THREAD = 64

# The largest magnitude a saved state may have in a column. No real car reaches it; larger values would lead to NaN.
MAX_MAGNITUDES = {
    "x_m": 1e6,
    "y_m": 1e6,
    "yaw_rad": 10.0,
    "forward_mps": 500.0,
    "left_mps": 500.0,
    "yaw_radps": 100.0,
    "steer": 1.5,
    "throttle": 1.5,
    "brake": 1.5,
    "shift_n": 1e5,
    "share": 1.5,
    "lateral_m": 1e4,
    "arc_m": 1e6,
    "lap_start_share": 1.5,
}

MAX_CACHED_RIBBON_BYTES = 64 << 20  # with the tracks that the cache keeps in memory

_INT_COLUMNS = tuple(name for name in STATE_DTYPE.names or () if STATE_DTYPE[name] == np.int32)


_RIBBONS: ByteLimitedCache[tuple[bool, tuple[Track, ...]], Ribbons] = ByteLimitedCache(MAX_CACHED_RIBBON_BYTES)


def needs_guide(observation: ObservationName, settings: RacerSettings) -> bool:
    """Whether the guide is seen or counted; it takes many times as long to make as the rest of a ribbon."""
    return observation in SEE_GUIDE or settings.rewards.progress_time_s > 0.0


def ribbon_of(track: Track, has_guide: bool) -> Ribbons:
    """The track as the simulator's arrays, made on first use and kept by the track."""
    return track.guided_ribbon if has_guide else track.ribbon


def ribbons_of(tracks: tuple[Track, ...], has_guide: bool) -> Ribbons:
    """The tracks as the simulator's arrays; cached, so that fleets on the same tracks share them."""
    if len(tracks) == 1:
        return ribbon_of(tracks[0], has_guide)
    ribbons = _RIBBONS.get((has_guide, tracks))
    if ribbons is None:
        ribbons = join_ribbons([ribbon_of(track, has_guide) for track in tracks])
        num_bytes = sum(part.nbytes for part in ribbons) + sum(track.num_bytes for track in tracks)
        _RIBBONS.put((has_guide, tracks), ribbons, num_bytes)
    return ribbons


def join_ribbons(parts: Sequence[Ribbons]) -> Ribbons:
    """One ribbon of several: what `pack_ribbons` makes of all their tracks, but without computing the portals again."""
    # As bytes: NumPy copies records field by field, which takes ten times as long.
    heads, nodes, portals = (
        np.concatenate([column.view(np.uint8) for column in columns]).view(columns[0].dtype)
        for columns in zip(*parts, strict=True)
    )
    first_node = first_portal = 0
    for head, part in zip(heads, parts, strict=True):
        head["first_node"] += first_node
        head["first_portal"] += first_portal
        first_node += len(part.nodes)
        first_portal += len(part.portals)
    return Ribbons(heads, nodes, portals)


def make_engine(num_cars: int) -> CpuEngine:
    """An engine with one thread per core, or fewer if there are too few cars to keep them busy."""
    return CpuEngine(min(default_threads(), max(1, num_cars // MIN_CARS_PER_THREAD)))


def check_repeat(repeat: object) -> None:
    """Raise ConfigError unless `repeat` is a valid number of ticks for one action."""
    check_count("action_repeat", repeat, REPEATS, "ticks")


class Fleet:
    """Cars, tracks and rules in one engine. Car i drives track i modulo the number of tracks, each given or named.

    Its attribute `tracks` has each track that is driven once, in the order of the first car on it.
    """

    def __init__(
        self,
        tracks: Sequence[str | Track],
        settings: RacerSettings,
        num_cars: int,
        engine: Engine,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        self.tracks, roads = load_roads(tracks, num_cars)
        ribbons = ribbons_of(self.tracks, needs_guide(observation, settings))
        self._set_up(ribbons, roads, settings, engine, observation)

    def _set_up(
        self,
        ribbons: Ribbons,
        roads: NDArray[np.integer[Any]],
        settings: RacerSettings,
        engine: Engine,
        observation: ObservationName,
    ) -> None:
        """Make the cars; `roads` has the number of each car's ribbon."""
        self.settings = settings
        self.num_cars = len(roads)
        self._engine = engine
        self.batch = engine.make_batch(self.num_cars, num_observations(observation))
        self.batch.states["track"] = roads
        self.scenario = Scenario(ribbons, settings.domain.car_records(self.num_cars), settings.rules())
        # Each car's action, followed by those that are under way where actions arrive late.
        self.sent_actions = make_actions(self.num_cars, self.delay_ticks)
        self._all_cars = np.ones(self.num_cars, np.bool_)

    @property
    def states(self) -> NDArray[np.void]:
        """The cars' states, one record each (`hotlap.sim.world.STATE_DTYPE`)."""
        return self.batch.states

    @property
    def delay_ticks(self) -> int:
        """The greatest time after which an action takes effect."""
        return self.settings.domain.delay_high_ticks

    @property
    def top_speed_mps(self) -> float:
        """The standard car's top speed, of which observed speeds are fractions."""
        return float(self.scenario.cars["top_speed_mps"][0])

    def seed(self, seeds: NDArray[np.uint64]) -> None:
        """Set every car's seed and restart its episode count at zero."""
        self.states["seed"] = seeds
        self.states["episode"] = 0

    def next_episode(self) -> None:
        """Advance every car to the random numbers of its next episode."""
        # The view is not kept between calls: in a copy of the fleet it would point to a different array.
        episodes = self.states["episode"]
        episodes += 1

    def reset(self, start: str | None = None, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin an episode for the cars in `mask` (default: all); `start` overrides the settings once."""
        scenario = self.scenario
        if start is not None:
            rules = scenario.rules.copy()
            rules["start"] = start_code(start)
            scenario = scenario._replace(rules=rules)
        self._engine.reset(self._all_cars if mask is None else mask, scenario, self.batch)

    def step(self, actions: NDArray[np.float32], autoreset: bool, repeat: int = 1) -> None:
        """One step of up to `repeat` ticks with one action per car; the results are in `batch`.

        Rewards and their terms are summed over the ticks. A car stops at the tick on which its episode ends.
        """
        if repeat != 1:
            check_repeat(repeat)
        sent = actions
        if self.delay_ticks:
            sent = self.sent_actions
            sent[:, :NUM_ACTIONS] = actions
        bad = self._engine.step(sent, self.scenario, self.batch, autoreset=autoreset, repeat=repeat)
        if bad != ALL_FINE:
            raise ActionError(f"action of car {bad} must be finite, got {actions[bad].tolist()}; nothing moved.")

    def get_state(self) -> FleetState:
        """A copy of the complete state, one array per column; `set_state` continues from it bit-identically."""
        under_way = {name: column.copy() for name, column in self._under_way().items()}
        return {name: self.states[name].copy() for name in STATE_DTYPE.names or ()} | under_way

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; StateError, with nothing changed, if it does not fit these cars and tracks."""
        columns, under_way = dict(state) if isinstance(state, Mapping) else {}, self._under_way()
        sent = {name: columns.pop(name, None) for name in under_way}
        loaded = read_columns(columns, STATE_DTYPE, self.num_cars, MAX_MAGNITUDES)
        check_indices(loaded, self.scenario)
        if sent:
            kind = np.dtype([(name, np.float32) for name in sent])
            sent_rows = read_columns(sent, kind, self.num_cars, dict.fromkeys(sent, 1e6))
            for name, column in under_way.items():
                column[:] = sent_rows[name]
        self.states[:] = loaded
        self._engine.observe(self.scenario, self.batch)

    def _under_way(self) -> FleetState:
        """The columns of the actions under way, as views: `under_way_0` and so on, three for each tick of the delay."""
        return {f"under_way_{k}": column for k, column in enumerate(self.sent_actions.T[NUM_ACTIONS:])}


def load_roads(tracks: Sequence[str | Track], count: int) -> tuple[tuple[Track, ...], NDArray[np.integer[Any]]]:
    """Each track that is driven once, and the number of the road of each of `count` cars or races, which take turns."""
    if not tracks:
        raise ConfigError("track_id: at least one track is needed, got an empty list.")
    find_entries(tracks)  # an unknown id is an error even if no car drives there
    driven = tracks[:count]
    order = {track: index for index, track in enumerate(dict.fromkeys(driven))}
    return load_tracks(list(order)), np.resize([order[track] for track in driven], count)


def check_indices(loaded: NDArray[np.void], scenario: Scenario) -> None:
    """Check all indices of states: compiled code would read outside its arrays with an index out of range."""
    for name in _INT_COLUMNS:
        if (loaded[name] < 0).any():
            raise StateError(f"state: column {name!r} must not be negative.")
    heads = scenario.ribbons.tracks
    if (loaded["track"] >= len(heads)).any():
        raise StateError(f"state: it was saved with more tracks than the {len(heads)} of this fleet.")
    if (loaded["node"] >= heads["num_nodes"][loaded["track"]]).any():
        raise StateError("state: a car is beyond the end of its track. Was it saved on another track?")
    if (loaded["next_gate"] >= scenario.rules["num_gates"][0]).any():
        raise StateError("state: column 'next_gate' must be less than the number of gates.")


def read_columns(
    state: Mapping[str, Any], dtype: "np.dtype[np.void]", num_cars: int, max_magnitudes: Mapping[str, float]
) -> NDArray[np.void]:
    """The columns of a saved state as records; StateError for other columns, types, shapes or magnitudes."""
    loaded, names = np.zeros(num_cars, dtype), dtype.names or ()
    if not isinstance(state, Mapping) or set(state) != set(names):
        raise StateError("state: its columns are not those of this version. Save it again with get_state().")
    for name in names:
        column = np.asarray(state[name])
        if column.shape != (num_cars,) or column.dtype != dtype[name]:
            raise StateError(
                f"state: column {name!r} must be {dtype[name]} of shape {(num_cars,)}, "
                f"got {column.dtype} of shape {column.shape}."
            )
        if name in max_magnitudes and not (np.abs(column, dtype=np.float64) <= max_magnitudes[name]).all():
            raise StateError(
                f"state: column {name!r} must be finite and at most {max_magnitudes[name]:g} in magnitude."
            )
        loaded[name] = column
    return loaded
