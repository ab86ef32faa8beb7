"""Learning: algorithms, batched worlds, callbacks, metrics and checkpoints; one run from one configuration."""

import os

# The simulator's threads would otherwise spin for a millisecond after each step, in the way of the learner and of
# whatever else the machine does: on two cores shared with others, learning was fifteen times slower. It is read when
# torch is first loaded, so it stands before all of this package's modules.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
