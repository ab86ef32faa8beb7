"""Training starts without torch's compiler."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import torch
from hotlap.training.optimizer_start import skip_compiler_import
def use_an_optimizer():
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.5)
    weight.sum().backward()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
    [group] = optimizer.param_groups
    print(group["lr"], weight.grad, "torch._dynamo" in sys.modules)
if os.fork():
    os.wait()
    use_an_optimizer()
else:
    skip_compiler_import()
    use_an_optimizer()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_optimizer_works_without_importing_the_compiler():
    printed = subprocess.run([sys.executable, "-u", "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["0.5 None False", "0.5 None True"]  # without it, torch imports the compiler
