"""A policy's kernel computes exactly the float32 operations written down here in numpy, for any net and any batch."""

from itertools import pairwise

import numpy as np
import pytest

from hotlap.errors import ModelError
from hotlap.sim.policy_forward import decide_cars, make_memory, pack_policy
from sim.kernels import F, exp_minus_one_of, sin_cos_of, tanh_of

LOW, HIGH = np.array([-1, 0, 0], F), np.array([1, 1, 1], F)
NUM_OBS, PROGRESS = 14, 12
ACTIVATIONS = ("tanh", "relu", "elu")


def make_layers(*widths: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random layers; the outputs reach beyond the actions' bounds."""
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(0.0, 1.5 / np.sqrt(inputs), (outputs, inputs)).astype(F), rng.normal(0.0, 0.2, outputs).astype(F))
        for inputs, outputs in pairwise(widths)
    ]


def make_observations(num_decisions: int, num_cars: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((num_decisions, num_cars, NUM_OBS), F)


def decisions(policy, observations: np.ndarray) -> np.ndarray:
    """The actions of (num_decisions, num_cars, 14) observations."""
    memory = make_memory(policy, observations.shape[1])
    actions = []
    for obs in observations:
        decide_cars(policy, np.ascontiguousarray(obs), memory)
        actions.append(memory.actions.copy())
    return np.stack(actions)


def over(wrapper, values: np.ndarray) -> np.ndarray:
    found = np.zeros(values.size, F)
    wrapper(np.ascontiguousarray(values).ravel(), found)
    return found.reshape(values.shape)


def activated(name: str, x: np.ndarray) -> np.ndarray:
    if name == "relu":
        return np.where(x < 0, F(0.0), x)
    return over(tanh_of, x) if name == "tanh" else np.where(x < 0, over(exp_minus_one_of, x), x)


def expected_actions(layers, observations, *, activation, stack=1, fourier=0, mean=None, scale=None, clip=np.inf,
                     is_squashed=False) -> np.ndarray:  # fmt: skip
    """One numpy operation, and so one rounding, for each operation of the kernel, in its order."""
    num_cars = observations.shape[1]
    history, actions = np.zeros((num_cars, stack, NUM_OBS), F), []
    for obs in observations:
        history = np.concatenate([history[:, 1:], obs[:, None]], axis=1)
        angles = obs[:, PROGRESS, None] * (F(2.0 * np.pi) * np.arange(1, fourier + 1, dtype=F))
        sines, cosines = np.zeros(angles.size, F), np.zeros(angles.size, F)
        sin_cos_of(angles.ravel(), sines, cosines)
        x = np.concatenate(
            [history.reshape(num_cars, -1), sines.reshape(angles.shape), cosines.reshape(angles.shape)], 1
        )
        if mean is not None:
            high = mean.astype(F)
            x = ((x - high) - (mean - high).astype(F)) * (1.0 / scale).astype(F)
        x = np.clip(x, F(-clip), F(clip))
        for number, (weight, bias) in enumerate(layers):
            total = np.tile(bias, (num_cars, 1))
            for k in range(weight.shape[1]):
                total = total + x[:, k, None] * weight[:, k]
            x = activated(activation, total) if number < len(layers) - 1 else total
        if is_squashed:
            x = LOW + F(0.5) * (over(tanh_of, x) + F(1.0)) * (HIGH - LOW)
        actions.append(np.clip(x, LOW, HIGH))
    return np.stack(actions)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (1,), (7,), (16, 8), (64, 64), (33, 130, 5)])
def test_every_bit_is_that_of_the_operations_in_their_order(activation, hidden):
    """Fails if a compiler fuses a multiplication with an addition, or changes the order of a sum."""
    layers, observations = make_layers(NUM_OBS, *hidden, 3), make_observations(2, 50)
    found = decisions(pack_policy(layers, activation=activation, bounds=(LOW, HIGH)), observations)
    np.testing.assert_array_equal(found, expected_actions(layers, observations, activation=activation))
    assert len(np.unique(found)) > 3


@pytest.mark.parametrize(("stack", "fourier", "is_squashed"), [(1, 8, False), (3, 0, True), (4, 64, False)])
def test_normalizer_stack_fourier_features_and_squashing_are_those_operations_too(stack, fourier, is_squashed):
    num_inputs = stack * NUM_OBS + 2 * fourier
    rng = np.random.default_rng(3)
    options = {
        "activation": "tanh", "mean": rng.normal(0.5, 0.2, num_inputs), "scale": rng.uniform(0.01, 1.0, num_inputs),
        "clip": 5.0, "is_squashed": is_squashed,
    }  # fmt: skip
    layers, observations = make_layers(num_inputs, 20, 3), make_observations(6, 40)
    policy = pack_policy(layers, bounds=(LOW, HIGH), num_stack=stack, num_fourier=fourier, **options)
    expected = expected_actions(layers, observations, stack=stack, fourier=fourier, **options)
    np.testing.assert_array_equal(decisions(policy, observations), expected)


def test_a_car_decides_the_same_alone_and_among_others():
    """A matrix product of a library sums in another order for another batch size."""
    policy = pack_policy(make_layers(44, 64, 64, 3), activation="tanh", bounds=(LOW, HIGH), num_stack=2, num_fourier=8)
    observations = make_observations(5, 37)
    together = decisions(policy, observations)
    for car in range(37):
        np.testing.assert_array_equal(decisions(policy, observations[:, [car]])[:, 0], together[:, car])
    np.testing.assert_array_equal(decisions(policy, observations[:, ::-1])[:, ::-1], together)


def test_an_input_that_hardly_varies_keeps_its_digits():
    """Its scale is 1e-4, so a mean rounded to float32 would be off by 3e-4 of it."""
    mean, scale = np.full(NUM_OBS, 1.0 / 3.0), np.full(NUM_OBS, 1e-4)
    layer = np.eye(3, NUM_OBS, dtype=F), np.zeros(3, F)
    policy = pack_policy([layer], activation="tanh", bounds=(-10 * HIGH, 10 * HIGH), mean=mean, scale=scale, clip=10.0)
    observations = (mean + 3e-4 * np.linspace(-1.0, 1.0, 40)[:, None, None] * np.ones((1, 1, NUM_OBS))).astype(F)
    exact = (observations[..., :3].astype(np.float64) - mean[:3]) / scale[:3]
    np.testing.assert_allclose(decisions(policy, observations), exact, rtol=3e-7, atol=1e-9)


def test_an_output_beyond_the_bounds_is_clipped_and_nan_stays_nan():
    layer = np.zeros((3, NUM_OBS), F), np.array([np.inf, -3.0, np.nan], F)
    for is_squashed, expected in ((False, [1.0, 0.0, np.nan]), (True, [1.0, 0.0025, np.nan])):
        policy = pack_policy([layer], activation="tanh", bounds=(LOW, HIGH), is_squashed=is_squashed)
        np.testing.assert_allclose(decisions(policy, make_observations(1, 1))[0, 0], expected, atol=1e-4)


def test_layers_that_do_not_fit_are_refused():
    """Compiled code would read beyond the end of the numbers."""
    for widths, message in (((13, 3), r"must be \(3, 14\), got \(3, 13\)"), ((14, 8, 2), "3 actions, got 2")):
        with pytest.raises(ModelError, match=message):
            pack_policy(make_layers(*widths), activation="tanh", bounds=(LOW, HIGH))
    first, _, last = make_layers(14, 8, 8, 3)
    with pytest.raises(ModelError, match=r"must be \(3, 9\), got \(3, 8\)"):
        pack_policy([make_layers(14, 9)[0], last], activation="tanh", bounds=(LOW, HIGH))
    pack_policy([first, last], activation="tanh", bounds=(LOW, HIGH))


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_gpu_gives_the_bits_of_the_cpu(activation):
    from numba import cuda, typeof

    from hotlap.sim.cuda_compilation import exact_kernel
    from hotlap.sim.policy_forward import PackedPolicy, PolicyMemory, decide

    def decide_on_gpu(policy, obs, memory):
        i = cuda.grid(1)
        if i < obs.shape[0]:
            decide(policy, obs[i], memory.history[i], memory.work[i], memory.actions[i])

    num_cars, observations = 2048, make_observations(5, 2048)
    layers = make_layers(2 * NUM_OBS + 16, 64, 64, 3)
    policy = pack_policy(layers, activation=activation, bounds=(LOW, HIGH), num_stack=2, num_fourier=8)
    memory = make_memory(policy, num_cars, num_workers=num_cars)
    kernel = exact_kernel(decide_on_gpu, (typeof(policy), typeof(observations[0]), typeof(memory)))
    on_gpu = PackedPolicy(*map(cuda.to_device, policy)), PolicyMemory(*map(cuda.to_device, memory))
    for obs, expected in zip(observations, decisions(policy, observations), strict=True):
        kernel[num_cars // 64, 64](on_gpu[0], cuda.to_device(np.ascontiguousarray(obs)), on_gpu[1])
        assert np.array_equal(on_gpu[1].actions.copy_to_host(), expected)
