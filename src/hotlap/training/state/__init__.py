"""The whole state of a run, captured and restored bit for bit."""
