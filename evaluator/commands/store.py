"""`store`: where an Assay keeps everything: made, migrated, shown, squashed, copied."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from benchmarks.command_line import JsonOption
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.registry import load_registry
from evaluator.commands.common import console, ended_in_order, table
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import cards_of, table_schemas
from leaderboard.publication.snapshot import known_and_shown
from leaderboard.store.opening import StoreName

if TYPE_CHECKING:
    from leaderboard.store.hub.hub_store import HubParts

Named = Annotated[
    StoreName,
    typer.Argument(help="The store: hub:OWNER/NAME.", parser=StoreName.parse, metavar="STORE"),
]
AnyStore = Annotated[
    StoreName,
    typer.Argument(
        help="A store: a folder, or hub:OWNER/NAME.", parser=StoreName.parse, metavar="STORE"
    ),
]


def store_app() -> typer.Typer:
    """The group of commands."""
    app = typer.Typer(
        help="The store: create, migrate, show, squash, cards, copy, backup, restore, page.",
        no_args_is_help=True,
    )
    for command in (create, migrate, show, squash, cards, copy, backup, restore, page):
        app.command()(command)
    return app


def create(
    name: Named,
    private: Annotated[
        bool, typer.Option("--private", help="For members only: results and boards as well.")
    ] = False,
) -> None:
    """Create the three dataset repositories of a store on the Hub, with their cards; safe to run again.

    The token (HF_TOKEN) must be allowed to create and write datasets of the owner.

    Example: python -m evaluator store create hub:my-org/assay
    """
    from leaderboard.store.hub import maintenance  # noqa: PLC0415 (the command line starts light)

    for line in maintenance.create(_parts(name), private=private):
        console().print(Text(line))
    cards(name)


def migrate(name: Named) -> None:
    """Bring a store of release 0.1.0 into three repositories; go on where it was stopped.

    Stop all workers and sites of 0.1.0 first. The store can be read meanwhile, and takes nothing
    until this is done. Its repository OWNER/NAME-scores is left as it is.

    Example: python -m evaluator store migrate hub:my-org/assay
    """
    from leaderboard.store.hub.migration import migrate  # noqa: PLC0415

    with ended_in_order(), tempfile.TemporaryDirectory(prefix="assay-migrate-") as scratch:
        for line in migrate(_parts(name), Path(scratch)):
            console().print(Text(line))
    cards(name)


def show(name: Named, as_json: JsonOption = False) -> None:
    """Show the repositories of a store on the Hub: versions, pins, length of history.

    Example: python -m evaluator store show hub:my-org/assay
    """
    from leaderboard.store.hub.maintenance import store_status  # noqa: PLC0415

    found = store_status(_parts(name))
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1, default=str))
        return
    rows = [
        (
            each.name,
            "members" if each.private else "everyone",
            str(each.commits),
            each.pinned[:12],
            each.head[:12],
        )
        for each in found.repositories
    ]
    console().print(table(("repository", "open to", "commits", "read at", "branch at"), rows))
    if found.frozen_until is not None:
        console().print(
            Text(f"A squash stops all commits until {found.frozen_until:%H:%M:%S} UTC.")
        )


def squash(
    name: Named,
    force: Annotated[
        bool, typer.Option("--force", help="Also while workers hold jobs, or after a stopped one.")
    ] = False,
) -> None:
    """Make one commit of each repository's history; files stay as they are.

    Commits are refused meanwhile, for seconds as a rule. Links to older commits end.

    Example: python -m evaluator store squash hub:my-org/assay
    """
    from leaderboard.store.hub import maintenance  # noqa: PLC0415

    parts = _parts(name)
    held = _leased(name)
    if held and not force:
        raise SubmitterError(
            "leases_live",
            f"Workers hold {len(held)} submissions, {held[0]} for example.",
            "Wait until they are done, or add --force: what is in work is then committed later.",
        )
    for line in maintenance.squash(parts, take_over=force):
        console().print(Text(line))


def cards(name: Named) -> None:
    """Write the dataset cards, by which the `datasets` library reads scores and results.

    Example: python -m evaluator store cards hub:my-org/assay
    """
    from leaderboard.store.hub.maintenance import write_cards  # noqa: PLC0415

    parts = _parts(name)
    known = known_and_shown(parts.public, cards_of(load_registry()))
    for line in write_cards(parts, known, table_schemas()):
        console().print(Text(line))


def copy(
    source: AnyStore,
    target: AnyStore,
    over: Annotated[
        bool,
        typer.Option(
            "--over",
            help="Replace what the target has otherwise: where the source was written to since an "
            "earlier copy. A target that is in use is set back by it.",
        ),
    ] = False,
) -> None:
    """Copy a store into an empty one, and compare the two; go on where a copy was stopped.

    Stop workers and app of the source first. Pulses and running logs are not copied.

    Example: python -m evaluator store copy .assay/store hub:my-org/assay
    """
    from leaderboard.store.copying import copy_store  # noqa: PLC0415

    _check_folder(source)
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="assay-copy-") as scratch:
        for line in copy_store(source.open(), target.open(), Path(scratch), anew=over):
            console().print(Text(line))


def backup(store: AnyStore, file: Annotated[Path, typer.Argument(help="A new file.")]) -> None:
    """Write a whole store into one file, while it is in use.

    The file holds private uploads, so that only you may read it. Pulses, running logs and what can
    be made again (caches, kept scores of running work) are not in it.

    Example: python -m evaluator store backup .assay/store assay-2026-11-22.tar
    """
    from leaderboard.store.backup import back_up  # noqa: PLC0415

    _check_folder(store)
    if not store.on_hub and file.resolve().is_relative_to(store.folder.resolve()):
        raise SubmitterError(
            "backup_in_store",
            f"{file} would be a file of the store itself, and may be seen by everybody then.",
            "Name a file outside of the store's folder.",
        )
    with ended_in_order():
        for line in back_up(store.open(), str(store), file):
            console().print(Text(line))


def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    store: Annotated[
        StoreName | None,
        typer.Argument(
            help="An empty store; without one the backup is only checked.",
            parser=StoreName.parse,
            metavar="[STORE]",
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="A store that is made for it is for members only.")
    ] = False,
) -> None:
    """Check every byte of a backup, then put it into an empty store; go on where it was stopped.

    A store on the Hub that is not there is created first, open to everyone unless with `--private`.

    Example: python -m evaluator store restore assay-2026-11-22.tar hub:my-org/assay
    """
    from leaderboard.store.backup import opened_backup  # noqa: PLC0415
    from leaderboard.store.copying import copy_store  # noqa: PLC0415

    with opened_backup(file) as (manifest, kept):
        made = f"{manifest.made_at:%Y-%m-%d %H:%M} UTC"
        n_files = len(manifest.members())
        console().print(Text(f"{file}: whole; {n_files} files of {manifest.store}, made {made}."))
        if store is None:
            return
        if store.on_hub:
            _create_missing(store, private=private)
        with ended_in_order(), tempfile.TemporaryDirectory(prefix="assay-restore-") as scratch:
            for line in copy_store(kept, store.open(), Path(scratch), anew=False):
                console().print(Text(line))
        if store.on_hub:
            cards(store)


def _create_missing(store: StoreName, *, private: bool) -> None:
    public = _parts(store).public
    try:
        public.version(public.fresh_head())
    except PlatformError as error:
        if error.code != "no_store":
            raise
        create(store, private=private)


def _check_folder(store: StoreName) -> None:
    """A folder that is opened is made; one that is read must be there."""
    if not store.on_hub and not store.folder.is_dir():
        raise SubmitterError("no_store", f"There is no store at {store}.", "Name its folder.")


def _parts(name: StoreName) -> HubParts:
    from leaderboard.store.hub.hub_store import HubParts  # noqa: PLC0415

    if not name.on_hub:
        raise SubmitterError(
            "not_on_hub",
            f"{name} is a folder: it needs none of this.",
            "Name a store on the Hub, for example hub:my-org/assay.",
        )
    return HubParts(name.hub_name, name.folder)


def _leased(name: StoreName) -> list[str]:
    """Ids of the submissions a worker holds now."""
    store = name.open()
    now = store.clock()
    return [
        status.submission.submission_id
        for status in Ledger(store).statuses()
        if status.lease_until is not None and status.lease_until > now
    ]


def page(
    name: Named,
    to: Annotated[Path, typer.Option("--to", help="File to write.")] = Path("index.html"),
) -> None:
    """Write the boards as one HTML file without scripts, for when the service does not answer.

    Example: python -m evaluator store page .assay/store --to index.html
    """
    from leaderboard.publication.index import index_base  # noqa: PLC0415
    from leaderboard.publication.reader import view_of  # noqa: PLC0415
    from leaderboard.publication.snapshot import read_snapshot  # noqa: PLC0415
    from leaderboard.publication.static_page import static_page  # noqa: PLC0415
    from leaderboard.ranking.orders import Orders  # noqa: PLC0415

    store = name.existing()
    snapshot = read_snapshot(store.public)
    if snapshot is None:
        raise SubmitterError(
            "nothing_published", f"Nothing is published in {name.text}.", "Wait for a first result."
        )
    cards = {board: of.card for board, of in snapshot.boards.items()}
    content = static_page(snapshot, index_base(view_of(snapshot, cards, Orders(store))))
    to.write_bytes(content)
    console().print(
        Text(f"{to}: {len(content):,} bytes, as of {snapshot.built_at:%Y-%m-%d %H:%M}.")
    )
