"""Bit-identical results: same seed, alone or in a batch, any number of threads, after a snapshot, on any CPU."""

import ast
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hotlap.sim
from hotlap.envs.racer import RacerEnv
from hotlap.envs.racer_vector import RacerVectorEnv
from sim.kernels import F
from sim.typed_kernels import float64_variables, typed_kernels, types_only

SIM = Path(hotlap.sim.__file__).parent
CONFIG = {"episode": {"start": "random", "maxSteps": 700, "stillnessTimeoutTicks": 90}}
NUM_CARS = 4


def scripted_actions(obs: np.ndarray, tick: int) -> np.ndarray:
    """Steer to the open side, and brake to a stop at times: cars lap, crash, stand and are reset."""
    actions = np.zeros((len(obs), 3), F)
    actions[:, 0] = np.clip(3.0 * (obs[:, 2] + obs[:, 3] - obs[:, 5] - obs[:, 6]), -1.0, 1.0)
    actions[:, 1] = np.clip(3.0 * obs[:, 4] + 0.3 - obs[:, 9], 0.0, 1.0)
    actions[:, 2] = np.clip(obs[:, 9] - 2.0 * obs[:, 4] - 0.2, 0.0, 1.0)
    if tick % 500 > 400:
        actions[:, 1:] = (0.0, 1.0)
    return actions


def digest_of_a_drive(num_threads: int, seed: int = 11, num_cars: int = 33, num_ticks: int = 400) -> str:
    """Digest of everything a batch did."""
    env = RacerVectorEnv(num_cars, ["track-01", "track-03"], CONFIG, num_threads=num_threads)
    obs, _ = env.reset(seed=seed)
    digest = hashlib.sha256(obs.tobytes())
    for tick in range(num_ticks):
        obs, rewards_, terminated, truncated, _ = env.step(scripted_actions(obs, tick))
        for array in (obs, rewards_, terminated, truncated, *env.get_state().values()):
            digest.update(array.tobytes())
    return digest.hexdigest()


def test_a_car_of_a_batch_equals_the_single_environment_through_resets():
    batch = RacerVectorEnv(NUM_CARS, "track-01", CONFIG)
    singles = [RacerEnv("track-01", CONFIG) for _ in range(NUM_CARS)]
    obs, _ = batch.reset(seed=5)
    own = np.stack([env.reset(seed=5 + car)[0] for car, env in enumerate(singles)])
    assert np.array_equal(obs, own)
    num_ends = 0
    for tick in range(10_000):
        actions = scripted_actions(obs, tick)
        obs, rewards_, terminated, truncated, info = batch.step(actions)
        for car, env in enumerate(singles):
            own[car], reward, is_terminated, is_truncated, _ = env.step(actions[car])
            assert (reward, is_terminated, is_truncated) == (rewards_[car], terminated[car], truncated[car])
            if is_terminated or is_truncated:
                num_ends += 1
                assert np.array_equal(info["final_obs"][car], own[car])
                own[car], _ = env.reset()
        assert np.array_equal(obs, own)
    assert num_ends > 10 * NUM_CARS


def test_a_seed_gives_the_same_bits_in_every_process_and_on_one_two_and_three_threads():
    code = (
        "from sim import test_determinism as t\n"
        "from hotlap.sim.batch_cpu import MAX_THREADS\n"
        "print(MAX_THREADS, *(t.digest_of_a_drive(k) for k in (1, 2, 3)))"
    )
    paths = [str(Path(__file__).parent.parent), str(SIM.parent.parent), os.environ.get("PYTHONPATH", "")]
    environ = {**os.environ, "NUMBA_NUM_THREADS": "3", "PYTHONPATH": os.pathsep.join(paths)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    max_threads, *digests = answer.stdout.split()
    assert max_threads == "3"
    assert len(digests) == 3
    assert set(digests) == {digest_of_a_drive(1)} != {digest_of_a_drive(1, seed=12)}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 900))
def test_a_restored_snapshot_continues_bit_identically(tick_of_snapshot):
    env = RacerVectorEnv(NUM_CARS, "track-01", CONFIG, num_threads=1)
    obs, _ = env.reset(seed=3)
    for tick in range(tick_of_snapshot):
        obs, *_ = env.step(scripted_actions(obs, tick))
    state = env.get_state()
    copy = RacerVectorEnv(NUM_CARS, "track-01", CONFIG, num_threads=1)
    copy.reset(seed=999)
    copy.set_state(state)
    for tick in range(tick_of_snapshot, tick_of_snapshot + 120):
        actions = scripted_actions(obs, tick)
        obs, rewards_, *_ = env.step(actions)
        copied_obs, copied_rewards, *_ = copy.step(actions)
        assert np.array_equal(obs, copied_obs)
        assert np.array_equal(rewards_, copied_rewards)
    before, after = env.get_state(), copy.get_state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


# --- nothing that differs between machines ---

# What a kernel may call by name or as an attribute, besides other kernels and constructors of numbers.
PLAIN = {"abs", "min", "max", "int", "range", "prange", "sqrt", "F", "U", "N", "M"}
DECORATORS = {"kernel", "rare_kernel", "entry_point"}
# Uses float64 outside the tick, with IEEE operations only.
FLOAT64_ON_PURPOSE = {"guide_line.py", "quick_line.py", "speed_profile.py"}


def decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.id if isinstance(target, ast.Name) else ""


def kernels_in(source: str) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and DECORATORS & {decorator_name(one) for one in node.decorator_list}
    ]


def foreign_calls(source: str, kernel_names: set[str]) -> list[str]:
    """Calls inside kernels that are neither plain arithmetic nor another kernel."""
    found = []
    for kernel in kernels_in(source):
        for node in ast.walk(kernel):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                found.append(f"{kernel.name}:{node.lineno}: power")
            if isinstance(node, ast.Call) and node not in kernel.decorator_list:
                name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
                if name not in PLAIN | kernel_names:
                    found.append(f"{kernel.name}:{node.lineno}: {name}")
    return found


def loose_numbers(source: str) -> list[str]:
    """Fractional literals inside kernels: they are float64 and promote float32 operands."""
    found = []
    for kernel in kernels_in(source):
        wrapped = {id(arg) for node in ast.walk(kernel) if isinstance(node, ast.Call) for arg in node.args}
        found += [
            f"{kernel.name}:{node.lineno}: {node.value}"
            for node in ast.walk(kernel)
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and id(node) not in wrapped
        ]
    return found


def sources() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in SIM.glob("*.py") if "cuda" not in path.name}


def test_kernels_call_nothing_of_the_platforms_math_and_hold_no_float64_literal():
    names = {kernel.name for source in sources().values() for kernel in kernels_in(source)}
    assert len(names) > 30
    found = {path: foreign_calls(source, names) for path, source in sources().items()}
    for path, source in sources().items():
        found[path] += [] if path in FLOAT64_ON_PURPOSE else loose_numbers(source)
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "body",
    ["math.sin(x)", "np.exp(x)", "hypot(x, x)", "x ** 2", "np.float64(x)", "np.random.random()", "0.5 * x + F(1.0)"],
)
def test_a_call_of_the_platforms_math_or_a_loose_literal_is_caught(body):
    source = f"@kernel\ndef f(x):\n    return {body}"
    assert len(foreign_calls(source, {"f"}) + loose_numbers(source)) == 1


def test_no_kernel_uses_float64():
    functions = typed_kernels()
    expected = {"decide", "tick", "observe", "view_point", "cast", "advance", "tyre_force", "count_gates", "meet_wall"}
    assert expected <= {function.__name__ for function, _ in functions}
    assert [line for function, typed in functions for line in float64_variables(function, typed)] == []


def test_float64_in_a_kernel_or_in_what_it_calls_is_found():
    @numba.njit
    def half(x):
        return x * 0.5

    @numba.njit
    def quarter(x):
        return F(half(half(x)))

    with types_only([half, quarter]):
        quarter.compile((numba.float32,))
        assert {line.partition(".")[0] for line in float64_variables(half, half.overloads.values())} == {"half"}
        assert float64_variables(quarter, quarter.overloads.values()) != []
    assert quarter(F(1.0)) == 0.25  # what was only typed is compiled when it is called
