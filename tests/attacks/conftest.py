"""Fixtures of the attack tests: the commands, run as in the tests of the command line."""

from cli.conftest import hotlap, refused

__all__ = ["hotlap", "refused"]
