"""The command `hotlap`, also as `python -m hotlap`. Ctrl-C ends it quietly even while its modules are imported."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Import and run the command line."""
    try:
        from hotlap.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # exit_codes.INTERRUPTED; nothing may be imported any more
    run()


if __name__ == "__main__":
    main()
