"""Training starts without torch's compiler."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
from hotlap.training.optimizer_start import skip_compiler_import
if sys.argv[1] == "skipped":
    skip_compiler_import()
weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=0.5)
weight.sum().backward()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
[group] = optimizer.param_groups
print(group["lr"], weight.grad, "torch._dynamo" in sys.modules)
"""


def test_an_optimizer_works_without_importing_the_compiler():
    for how, imported in (("skipped", "False"), ("as it is", "True")):
        command = [sys.executable, "-c", PROGRAM, how]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert printed.split() == ["0.5", "None", imported]
