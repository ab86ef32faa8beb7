"""Every error is a HotlapError and a fitting built-in exception, and prints its message only."""

import inspect

import pytest

from hotlap import errors

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


def test_an_error_derives_from_the_builtin_a_caller_expects():
    for name in ("Config", "Action", "State", "Track", "Driver", "Report", "Archive"):
        assert issubclass(getattr(errors, f"{name}Error"), ValueError)
    assert issubclass(errors.UnknownTrackError, LookupError)
    assert issubclass(errors.InputFileError, FileNotFoundError)
    assert issubclass(errors.OutputFileError, OSError)
    builtins = (ValueError, RuntimeError, OSError, LookupError)
    assert [kind for kind in ALL if kind is not errors.HotlapError and not issubclass(kind, builtins)] == []


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_is_a_hotlap_error_and_prints_its_message_without_quotes(kind):
    assert issubclass(kind, errors.HotlapError)
    message = "track.csv:3: half-width is 0 m; it must be positive. Check columns 3 and 4."
    assert str(kind(message)) == message
    assert str(kind()) == ""


def test_a_mistyped_word_gets_the_closest_known_one():
    known = {"gamma": 1, "gae_lambda": 2}
    assert errors.closest("gama", known) == "gamma"
    assert errors.closest("xyz", known) is None
    assert errors.did_you_mean("gamma", "See the docs.") == "Did you mean 'gamma'?"
    assert errors.did_you_mean(None, "See the docs.") == "See the docs."
