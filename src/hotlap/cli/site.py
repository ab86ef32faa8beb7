"""`hotlap site`: the page as static files."""

from pathlib import Path
from typing import Annotated

import typer

from hotlap.cli.output import Json, print_json


def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; new, empty, or an older page.")],
    generated: Annotated[
        bool, typer.Option("--generated", help="With the 125 generated tracks too: 18 MB more, a quarter of a minute.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the page as static files for any web host: watch, race, replays, tracks and drivers.

    Example: hotlap site public && python -m http.server --directory public
    """
    from hotlap.web.site import generated_ids, write_site

    num_bytes = write_site(folder, generated_ids() if generated else ())
    if as_json:
        print_json({"folder": str(folder), "bytes": num_bytes})
        return
    print(f"{folder}: {num_bytes / 1e6:.2f} MB. Try it: python -m http.server --directory {folder}")
