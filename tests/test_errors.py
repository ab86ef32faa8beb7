"""Every error is a HotlapError and a fitting built-in exception, and prints its message only."""

import inspect
import re
import sys
from pathlib import Path

import pytest

from hotlap import errors

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]


def test_an_error_derives_from_the_builtin_a_caller_expects():
    for name in ("Config", "Action", "State", "Track", "Driver", "Report", "Archive"):
        assert issubclass(getattr(errors, f"{name}Error"), ValueError)
    assert issubclass(errors.UnknownTrackError, LookupError)
    assert issubclass(errors.InputFileError, FileNotFoundError)
    assert issubclass(errors.OutputFileError, OSError)
    builtins = (ValueError, RuntimeError, OSError, LookupError, ImportError)
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


@pytest.mark.parametrize(("module", "extra"), [("torch", "train"), ("torch.nn", "train"), ("casadi", "optimal")])
def test_a_missing_library_is_explained_by_the_extra_that_brings_it(module, extra):
    explained = errors.explain_missing(ModuleNotFoundError("No module", name=module))
    assert isinstance(explained, errors.MissingLibraryError)
    assert str(explained) == f'this needs {module.split(".")[0]}. Install it: pip install "hotlap[{extra}]".'


def test_a_missing_module_that_no_extra_brings_stays_what_it_is():
    error = ModuleNotFoundError("No module named 'nothing'", name="nothing")
    assert errors.explain_missing(error) is error


# A library whose package has another name.
PACKAGES = {"mlflow": "mlflow_skinny", "pygame": "pygame_ce"}


def test_every_extra_of_a_missing_library_exists_and_brings_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for library, extra in errors.EXTRAS.items():
        brought = [re.match(r"[\w-]+", line)[0].replace("-", "_") for line in project["optional-dependencies"][extra]]
        assert PACKAGES.get(library, library) in brought
