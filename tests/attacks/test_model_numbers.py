"""Forged numbers in model files: statistics, weights and layers that give no action are refused when a file is read.

Every command refuses such a file with the same line. What was tried: variances below zero, statistics and weights near
the largest float, tensors whose type was relabelled in the header, and cards of a hundred thousand layers.
"""

import json
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load, save

from attacks.model_mutations import resealed, unzip, zip_members
from hotlap.errors import ModelError
from hotlap.models.model_file import MAX_LAYERS, read_model

LARGEST = float(np.finfo(np.float32).max)
SECONDS = 1.0  # each takes milliseconds; the machine may be busy


def forge_arrays(source: Path, target: Path, member: str, **changes: Any) -> Path:
    """A model with other values in one member, each an array or a number for all its elements, and right digests."""
    members = unzip(source.read_bytes())
    arrays = load(members[f"{member}.safetensors"])
    for name, value in changes.items():
        key = next(key for key in arrays if key.replace(".", "_") == name)
        arrays[key] = np.full_like(arrays[key], value)
    members[f"{member}.safetensors"] = save(arrays)
    target.write_bytes(zip_members(list(resealed(members).items())))
    return target


def forge_types(source: Path, target: Path, member: str, kind: str, other: str) -> Path:
    """A model whose tensors have another type in the header of a member, over the same bytes."""
    members = unzip(source.read_bytes())
    content = members[f"{member}.safetensors"]
    [size] = struct.unpack("<Q", content[:8])
    header = content[8 : 8 + size].replace(f'"{kind}"'.encode(), f'"{other}"'.encode())
    assert header != content[8 : 8 + size]
    members[f"{member}.safetensors"] = struct.pack("<Q", len(header)) + header + content[8 + size :]
    target.write_bytes(zip_members(list(resealed(members).items())))
    return target


@pytest.fixture
def refused_by_all(refused, tmp_path):
    """The one line with which `evaluate` and both exports refuse a model."""

    def line(model: Path) -> str:
        started = time.thread_time()
        with pytest.raises(ModelError) as caught:
            read_model(model)
        assert time.thread_time() - started < SECONDS
        lines = {
            refused("evaluate", model, "--episodes", 1),
            refused("export", model, "--format", "onnx", "--out", tmp_path / "out.onnx"),
            refused("export", model, "--format", "sb3", "--out", tmp_path / "out"),
        }
        assert lines == {f"hotlap: {caught.value}"}
        assert not list(tmp_path.glob("out*"))
        return str(caught.value)

    return line


@pytest.mark.parametrize("subject", ["racer", "cartpole"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("obs_var", -1.0),
        ("obs_var", -1e-9),  # with the floor of 1e-8 it has a square root, but it is no variance
        ("obs_var", -1e300),
        ("obs_var", 1e300),
        ("obs_mean", 1e300),
        ("obs_mean", -1e39),
        ("return_var", -1.0),
    ],
)
def test_statistics_out_of_range_are_refused(request, subject, tmp_path, refused_by_all, name, value):
    source = request.getfixturevalue(subject).path
    model = forge_arrays(source, tmp_path / "model.zip", "normalizer", **{name: value})
    assert f"model.zip: {name!r}" in refused_by_all(model)


@pytest.mark.parametrize("subject", ["racer", "cartpole"])
@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 1e38])
def test_weights_that_overflow_are_refused(request, subject, tmp_path, refused_by_all, value):
    source = request.getfixturevalue(subject).path
    names = [name for name in read_model(source).weights if "policy_net" in name or "action_net" in name]
    changes = {name.replace(".", "_"): value for name in names}
    line = refused_by_all(forge_arrays(source, tmp_path / "model.zip", "policy", **changes))
    assert "its weights are too large" in line


def test_one_layer_that_overflows_is_refused(racer, tmp_path, refused_by_all):
    model = forge_arrays(racer.path, tmp_path / "model.zip", "policy", action_net_weight=LARGEST)
    assert "its weights are too large" in refused_by_all(model)


def test_a_mean_that_no_clip_holds_back_is_refused(racer, tmp_path, refused_by_all):
    model = forge_arrays(racer.path, tmp_path / "mean.zip", "normalizer", obs_mean=1e38, obs_var=0.0)
    members = unzip(model.read_bytes())
    manifest = json.loads(members["manifest.json"])
    manifest["about"]["card"]["clip_obs"] = 1e300
    (tmp_path / "model.zip").write_bytes(zip_members(list(resealed(members, manifest).items())))
    assert "its weights are too large" in refused_by_all(tmp_path / "model.zip")


@pytest.mark.parametrize("value", [1e6, -1e15])
def test_large_weights_that_give_actions_are_used_by_evaluate_and_export(racer, tmp_path, hotlap, value):
    model = forge_arrays(racer.path, tmp_path / "model.zip", "policy", action_net_weight=value)
    assert hotlap("evaluate", model, "--episodes", 1, "--json").code == 0
    assert hotlap("export", model, "--format", "onnx", "--out", tmp_path / "out.onnx").code == 0
    session = onnxruntime.InferenceSession(str(tmp_path / "out.onnx"))
    [entry] = session.get_inputs()
    obs = np.random.default_rng(0).random((200, entry.shape[1]), np.float32)
    [actions] = session.run(None, {"observation": obs})
    assert np.isfinite(actions).all()
    assert (np.abs(actions) <= 1.0).all()


@pytest.mark.parametrize(
    ("member", "kind", "other"), [("policy", "F32", "I32"), ("policy", "F32", "U32"), ("normalizer", "F64", "I64")]
)
def test_weights_relabelled_as_whole_numbers_are_refused(racer, tmp_path, refused_by_all, member, kind, other):
    line = refused_by_all(forge_types(racer.path, tmp_path / "model.zip", member, kind, other))
    number = {"I": "int", "U": "uint"}[other[0]] + other[1:]
    assert f"is {number}; " in line


@pytest.mark.parametrize(
    "widths", [[8] * 100_000, [8] * (MAX_LAYERS + 1), [65_536, 65_536], [10**9], [0]], ids=lambda widths: len(widths)
)
@pytest.mark.parametrize("name", ["net_arch", "critic_arch"])
def test_a_card_of_too_many_or_too_wide_layers_is_refused_at_once(racer, tmp_path, refused_by_all, name, widths):
    members = unzip(racer.path.read_bytes())
    manifest = json.loads(members["manifest.json"])
    manifest["about"]["card"]["policy"][name] = widths
    (tmp_path / "model.zip").write_bytes(zip_members(list(resealed(members, manifest).items())))
    line = refused_by_all(tmp_path / "model.zip")
    assert f"policy: {name}" in line
    assert len(line) < 500
