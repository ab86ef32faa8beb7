"""Learning: algorithms, batched worlds, callbacks, metrics and checkpoints; one run from one configuration."""
