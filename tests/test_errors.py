"""Every error is a HotlapError, the built-in a caller expects, and says its message and nothing else."""

import inspect

import pytest

from hotlap import errors

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
EXPECTED = {
    "ConfigError": ValueError,
    "ActionError": ValueError,
    "StateError": ValueError,
    "TrackError": ValueError,
    "UnknownTrackError": LookupError,
    "DriverError": ValueError,
    "InputFileError": FileNotFoundError,
    "OutputFileError": OSError,
    "ReportError": ValueError,
    "ArchiveError": ValueError,
}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_one_except_clause_catches_them_all(kind):
    with pytest.raises(errors.HotlapError):
        raise kind("message")


@pytest.mark.parametrize(("name", "builtin"), EXPECTED.items())
def test_an_error_is_the_builtin_a_caller_expects(name, builtin):
    assert issubclass(getattr(errors, name), builtin)


def test_every_error_but_the_root_fits_a_builtin():
    builtins = (ValueError, RuntimeError, OSError, LookupError)
    assert [kind for kind in ALL if kind is not errors.HotlapError and not issubclass(kind, builtins)] == []


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_the_text_is_the_message_unquoted(kind):
    message = "track.csv:3: half-width is 0 m; it must be positive. Check columns 3 and 4."
    assert str(kind(message)) == message


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_error_says_what_it_is_for(kind):
    assert kind.__doc__
    assert kind.__doc__.strip()


def test_an_error_without_a_message_still_prints():
    assert str(errors.InputFileError()) == ""
    assert str(errors.OutputFileError()) == ""
