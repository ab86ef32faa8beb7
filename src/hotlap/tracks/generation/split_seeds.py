"""The seeds of the generated tracks that ship."""

TRAIN_SEEDS = range(100)
TEST_SEEDS = range(10_000, 10_025)
