"""Starts Python processes of our own that do not import from the current folder.

Python puts the current folder first on the path of `python -m` and `python -c`: a file `numba.py` in a folder of
downloads would be executed. The option -P, which prevents that, is missing in Python 3.10, and -I would ignore
PYTHONPATH too. Only modules that every interpreter has loaded before may be imported here.
"""

import os
import sys

_START = (
    "import sys\n"
    "if sys.path[:1] == ['']: del sys.path[0]\n"  # the current folder
    "del sys.argv[0]\n"
    "import runpy\n"
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module as `python -m` does, but without the current folder on its path."""
    return [sys.executable, "-c", _START, module, *arguments]


def leave_working_folder() -> None:
    """Take the current folder off the path where `python -m hotlap` has put it there."""
    is_left_out = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    # "-m" stands there while Python looks for the module to run, and only then.
    if sys.argv[:1] != ["-m"] or is_left_out:
        return
    try:
        if sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 (pathlib may not be loaded yet)
            del sys.path[0]
    except OSError:  # the folder was removed, so it is not on the path
        return
