"""Ctrl-C that is never lost: Python drops an exception raised where nothing can receive it."""

import signal
import sys
from importlib.machinery import ExtensionFileLoader
from types import FrameType
from typing import Any

RETRY_S = 0.02


def hear_interrupts() -> None:
    """Raise KeyboardInterrupt at SIGINT wherever it arrives; a SIGINT that the caller ignores stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    if loses_exceptions(frame):
        from _thread import interrupt_main
        from threading import Timer

        again = Timer(RETRY_S, interrupt_main)
        again.daemon = True
        again.start()
        return
    sys.unraisablehook = _ignore
    raise KeyboardInterrupt


def loses_exceptions(frame: FrameType | None) -> bool:
    """Whether an exception raised here would be dropped by a destructor, a callback from C or a compiled module."""
    while frame is not None:
        code = frame.f_code
        is_destructor = code.co_name == "__del__"
        is_callback = code.co_name.startswith("_raw_object_cache_")  # llvmlite loads or stores compiled code
        # A compiled module may clear errors while it is set up, as numpy.random does.
        is_loading = code.co_name == "exec_module" and isinstance(frame.f_locals.get("self"), ExtensionFileLoader)
        if is_destructor or is_callback or is_loading:
            return True
        frame = frame.f_back
    return False


def _ignore(_unraisable: Any) -> None:
    """What an interrupt left half made complains when it is destroyed; nobody needs to read that."""
