"""Gymnasium environments over the simulator: thin, no physics."""
