"""The option --allow-import: modules that the user trusts to register environments."""

from typing import Annotated

import typer

AllowImport = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-import",
        metavar="MODULE",
        help="Import this module first, which runs its code, so that it registers its environments. Repeatable.",
    ),
]


def import_and_say(modules: list[str] | None) -> list[str]:
    """Import the modules that the user named, say so on stderr, and return them."""
    if not modules:
        return []
    from hotlap.envs.gym_registry import import_allowed

    for module in modules:
        import_allowed([module])
        typer.echo(f"hotlap: imported {module}, as --allow-import says.", err=True)
    return modules
