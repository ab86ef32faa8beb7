"""What `--device` means with and without a GPU."""

import logging

import pytest

from hotlap.errors import ConfigError
from hotlap.training import device
from hotlap.training.device import choose_device


@pytest.mark.parametrize(
    ("problem", "asked", "answer"),
    [
        (None, None, None), (None, "cpu", "cpu"), (None, "cuda", "cuda"), (None, "auto", "cuda"),
        ("no GPU.", None, None), ("no GPU.", "cpu", "cpu"), ("no GPU.", "auto", "cpu"),
    ],
)  # fmt: skip
def test_the_device_that_is_meant(monkeypatch, caplog, problem, asked, answer):
    monkeypatch.setattr(device, "find_cuda_problem", lambda: problem)
    with caplog.at_level(logging.INFO):
        assert choose_device(asked) == answer
    assert ("Trains on the CPU: no GPU." in caplog.text) == (problem is not None and asked == "auto")


def test_a_gpu_that_is_missing_or_a_device_that_does_not_exist_is_refused(monkeypatch):
    monkeypatch.setattr(device, "find_cuda_problem", lambda: "no GPU.")
    with pytest.raises(ConfigError, match=r"--device cuda: no GPU\."):
        choose_device("cuda")
    with pytest.raises(ConfigError, match="--device must be cpu, cuda or auto, got 'tpu'"):
        choose_device("tpu")


def test_where_torch_finds_none_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(device.torch.cuda, "is_available", lambda: False)
    assert "hotlap[gpu]" in device.find_cuda_problem()
