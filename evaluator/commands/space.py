"""`space`: the folder to push to a Space of the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from evaluator.commands.common import console
from leaderboard.store.opening import StoreName


def space(
    out: Annotated[Path, typer.Argument(help="Folder to write; it must be empty or not there.")],
    store: Annotated[
        StoreName | None,
        typer.Option(
            "--store",
            envvar="ASSAY_STORE",
            help="The store it shows, hub:OWNER/NAME; its public datasets are then named in the "
            "card.",
            parser=StoreName.parse,
            metavar="STORE",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Of the Space; by default that of Assay.")
    ] = None,
) -> None:
    """Write the folder that makes a Space of the site: without torch, and with nothing private.

    Example: python -m evaluator space build/space --store hub:my-org/assay
    """
    # Only here: it reads YAML, and the command line starts without.
    from evaluator.launching.space_folder import SECRETS, VARIABLES, SpaceFolder  # noqa: PLC0415

    n_bytes = SpaceFolder(store, title).write(out)
    print_ = console().print
    print_(Text(f"{out}: {n_bytes / 1e6:.1f} MB, to be pushed to a Space."), soft_wrap=True)
    print_(
        Text("Push it: hf upload OWNER/SPACE " + f"{out} . --type space --delete '*'"),
        soft_wrap=True,
    )
    for kind, names in (("variable", VARIABLES), ("secret", SECRETS)):
        for name, told in names.items():
            print_(Text(f"Set the {kind} {name}: {told}."), soft_wrap=True)
