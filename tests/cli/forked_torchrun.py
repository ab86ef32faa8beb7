"""`torchrun` whose workers are forked by the tests' server, so that none of them has to import torch first."""

import sys
from pathlib import Path

from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
from torch.distributed.run import main

sys.path.insert(0, str(Path(__file__).parents[1]))

from forked_python import Popen

subprocess_handler.Popen = Popen  # type: ignore[misc]
main(sys.argv[1:])
