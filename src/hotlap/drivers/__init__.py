"""Drivers: they choose the actions of every car of a fleet."""
