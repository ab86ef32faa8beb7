"""Speed measurements on this machine: the simulator, training, and other simulators for comparison."""
