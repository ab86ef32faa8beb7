"""Measures speed on this machine: the simulator, learning, and other simulators beside them."""
