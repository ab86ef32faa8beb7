"""Training: algorithms, vectorized environments, callbacks, metrics and checkpoints; one run from one configuration."""

import os

# Otherwise the simulator's threads spin for a millisecond after each step and take CPU time from the learner: on two
# shared cores, training was fifteen times slower. OpenMP reads the variable when torch is first loaded, so it is set
# before any module of this package is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
