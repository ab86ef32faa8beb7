"""Ctrl-C ends a command wherever it arrives, also where Python would drop the exception."""

import ctypes
import os
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader

import pytest

from hotlap.interrupts import loses_exceptions

HEAR = "import signal, sys, time; from hotlap.interrupts import hear_interrupts; hear_interrupts()\n"
WAIT = """
try:
    time.sleep(20)
except KeyboardInterrupt:
    sys.exit(130)
"""
DESTRUCTOR = """
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.1)
Interrupted()
"""
CALLBACK = """
import ctypes
def _raw_object_cache_notify():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.1)
ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)()
"""
# Cython's modules register a class while they are set up, and drop what that raises.
COMPILED_MODULE = """
from collections.abc import Sequence
def interrupted(kind):
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.1)
Sequence.register = interrupted
import numpy.random
del Sequence.register
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("place", [DESTRUCTOR, CALLBACK, COMPILED_MODULE])
def test_an_interrupt_that_python_would_drop_comes_again(place):
    answer = subprocess.run([sys.executable, "-c", HEAR + place + WAIT], capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


def test_what_an_interrupt_left_half_made_is_destroyed_in_silence():
    half = "class Half:\n    def __del__(self): raise AttributeError('half made')\n"
    code = HEAR + half + "half = Half()\ntry: signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt: del half\n"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_an_ignored_interrupt_stays_ignored():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + HEAR
    code += "signal.raise_signal(signal.SIGINT)\nprint('goes on')"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stdout) == (0, "goes on\n")


def test_places_that_drop_exceptions_are_known():
    found = {}

    class Destroyed:
        def __del__(self):
            found["destructor"] = loses_exceptions(sys._getframe())

    class Loader(ExtensionFileLoader):
        def exec_module(self, module):
            found["module"] = loses_exceptions(sys._getframe())

    def _raw_object_cache_getbuffer():
        found["callback"] = loses_exceptions(sys._getframe())

    Destroyed()
    Loader("name", "path").exec_module(None)
    ctypes.CFUNCTYPE(None)(_raw_object_cache_getbuffer)()
    assert found == {"destructor": True, "module": True, "callback": True}
    assert not loses_exceptions(sys._getframe())
