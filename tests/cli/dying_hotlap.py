"""`hotlap` that kills itself before or after the Nth `Path.replace`: python dying_hotlap.py before|after N …"""

import os
import signal
import sys
from pathlib import Path

from hotlap.cli.main import main

moment, left = sys.argv.pop(1), int(sys.argv.pop(1))
replace = Path.replace


def dying(self: Path, target: Path) -> Path:
    """`Path.replace`, with the kill."""
    global left
    left -= 1
    if left == 0 and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = replace(self, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


Path.replace = dying  # type: ignore[method-assign]

if __name__ == "__main__":
    main()
