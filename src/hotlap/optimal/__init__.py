"""The minimum-time lap of a track, by optimal control on the simulator's own equations."""
