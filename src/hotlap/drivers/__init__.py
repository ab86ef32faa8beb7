"""Drivers: anything that looks at the cars of a fleet and says what they do next."""
