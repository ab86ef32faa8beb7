"""The command `hotlap`, also as `python -m hotlap`. Ctrl-C ends it quietly even while its modules are imported."""

import gc
import sys
from collections.abc import Mapping
from typing import NoReturn

from hotlap.interrupts import hear_interrupts

# New objects before the first search for garbage: more than imports and compiled code make, which is none of it.
FIRST_COLLECTION = 1_000_000


def collect_later() -> None:
    """Put off the first garbage collection, which took a tenth of a short command; later ones come as usual."""
    usual = gc.get_threshold()

    def go_on_as_usual(_phase: str, info: Mapping[str, int]) -> None:
        is_asked_for = info["generation"] == 2  # as Python does when it ends
        if gc.get_threshold()[0] == FIRST_COLLECTION and not is_asked_for:
            gc.set_threshold(*usual)

    gc.callbacks.append(go_on_as_usual)
    gc.set_threshold(FIRST_COLLECTION, *usual[1:])


def main() -> NoReturn:
    """Import and run the command line."""
    collect_later()
    hear_interrupts()
    try:
        from hotlap.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # exit_codes.INTERRUPTED; nothing may be imported any more
    run()


if __name__ == "__main__":
    main()
