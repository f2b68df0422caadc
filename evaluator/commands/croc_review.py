"""`croc review` and `croc review-export`: the human step of CROC_hum, on a page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from benchmarks.command_line import JsonOption
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import append_lines
from evaluator.commands.common import Head, aligned_table, console
from evaluator.commands.listening import HostOption, PortOption, bound_socket, token_for
from leaderboard.text import interval, number

if TYPE_CHECKING:
    from evaluator.croc.review import Review
    from evaluator.croc.review_set import ReviewSet


class Rule(StrEnum):
    """When an image stays that several raters decided."""

    MAJORITY = "majority"
    ALL = "all"
    ANY = "any"


ReviewFolder = Annotated[
    Path,
    typer.Argument(
        help="Folder with generated images, laid out as CROC_syn or CROC_hum.",
        exists=True,
        file_okay=False,
    ),
]
DecisionsOption = Annotated[
    Path | None,
    typer.Option(help="File of all decisions; without it, review.jsonl in the folder."),
]


def review(
    folder: ReviewFolder,
    *,
    decisions: DecisionsOption = None,
    taxonomy: Annotated[
        Path | None, typer.Option(help="Taxonomy whose definitions are shown to raters.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the orders in which raters see pairs.")] = 0,
    repeats: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of rows shown again, to see who is consistent."),
    ] = 0.05,
    port: PortOption = 7862,
    host: HostOption = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that the address must carry.")
    ] = None,
) -> None:
    """Serve a page on which people keep or drop each image of contrasting prompt pairs.

    As CROC_hum was made: drop what misses the tested property, tolerate anything else. Raters
    name themselves, each sees another order, and all may stop and go on at any time.

    Example: python -m evaluator croc review my_images
    """
    import uvicorn  # noqa: PLC0415 (with FastAPI, where a page is served)

    from evaluator.croc.review_page import review_app  # noqa: PLC0415

    token = token_for(host, token_file)
    looked_through = _review(folder, decisions, taxonomy, seed=seed, repeats=repeats)
    append_lines(looked_through.log.path, b"")  # Whether it can be written shows now.
    with bound_socket(host, port) as place:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{place.getsockname()[1]}/"
        images = looked_through.images
        said = f"{len(images.pairs):,} prompt pairs, {images.n_images:,} images: {address}"
        if images.missing:
            said += (
                f"\n{len(images.missing):,} listed images are not there: {images.missing[0]}, ..."
            )
        console().print(Text(said + (" (with ?token=... once)" if token else "")))
        how = uvicorn.Config(review_app(looked_through, token), log_level="warning")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(how).run(sockets=[place])


def review_export(
    folder: ReviewFolder,
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    *,
    name: Annotated[
        str, typer.Option(help="Of the benchmark; without it, that of the folder to make.")
    ] = "",
    title: Annotated[str, typer.Option(help="Of its board; without it, the name.")] = "",
    rule: Annotated[
        Rule, typer.Option(help="When an image stays that several raters decided; a tie does not.")
    ] = Rule.MAJORITY,
    decisions: DecisionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a benchmark of the images that were kept, in the layout in which CROC_hum was released.

    Its card is taken by `ASSAY_BENCHMARKS`. Says what was kept, dropped and left undecided, by
    property and side, which prompts have no image left, and how far raters agree.

    Example: python -m evaluator croc review-export my_images --out boards/my_croc
    """
    from evaluator.croc.agreement import agreement_of  # noqa: PLC0415 (with NumPy, where used)
    from evaluator.croc.review_export import export, kept_images, report_of  # noqa: PLC0415

    named = name or re.sub(r"[^a-z0-9]+", "_", out.name.lower()).strip("_")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]{0,59}", named):
        raise SubmitterError(
            "bad_name",
            f"{named!r} is no name of a benchmark.",
            "Give lower-case letters, digits, _.",
        )
    looked_through = _review(folder, decisions)
    votes = looked_through.votes()
    images = looked_through.images
    kept = kept_images(images, votes, rule.value)
    report = report_of(kept, agreement_of(votes, images.categories), looked_through)
    export(images, kept, out, (named, title or named), report)
    if as_json:
        typer.echo(json.dumps(report, indent=1))
        return
    for block in _export_lines(report, images, out):
        console().print(block)


def _review(
    folder: Path,
    decisions: Path | None,
    taxonomy: Path | None = None,
    *,
    seed: int = 0,
    repeats: float = 0.0,
) -> Review:
    from evaluator.croc.decisions import DecisionLog  # noqa: PLC0415
    from evaluator.croc.review import Review  # noqa: PLC0415
    from evaluator.croc.review_set import read_review_set  # noqa: PLC0415
    from evaluator.croc.taxonomy import read_taxonomy  # noqa: PLC0415

    defined = () if taxonomy is None else read_taxonomy(taxonomy).properties
    images = read_review_set(folder, {one.key: one.definition for one in defined})
    log = DecisionLog(decisions or folder / "review.jsonl")
    return Review(images, log, seed=seed, repeats=repeats)


def _export_lines(report: dict[str, Any], images: ReviewSet, out: Path) -> Iterator[RenderableType]:
    """What was kept, which prompts have no image left, and how far raters agree."""
    fates = list(report["images"])
    heads: list[Head] = [
        ("property", "left"),
        ("side", "left"),
        *((fate, "right") for fate in fates),
        ("α", "left"),
    ]
    rows = []
    for category, sides in report["properties"].items():
        alpha = _alpha(report["agreement"]["by_property"][category])
        for side, counts in sides.items():
            numbers = (f"{counts[fate]:,}" for fate in fates)
            rows.append([images.properties[category].title, side, *numbers, alpha])
            alpha = ""
    totals = (f"{report['images'][fate]:,}" for fate in fates)
    rows.append(["all", "", *totals, _alpha(report["agreement"]["overall"])])
    yield Text(f"{out}: rule {report['rule']}, raters: {', '.join(report['raters'])}")
    yield aligned_table(heads, rows)
    for side, pairs in report["pairs_without_kept"].items():
        if pairs:
            yield Text(f"Without any kept image of the {side}: {', '.join(pairs)}")
    if report["pairs_left_out"]:
        yield Text(f"Left out, since no image is kept: {', '.join(report['pairs_left_out'])}")
    if report["missing_images"]:
        yield Text(f"Listed, but not in the folder: {', '.join(report['missing_images'])}")
    if n := report["decided_images_gone"]:
        yield Text(f"Decided, but gone or replaced since, so they do not count: {n:,} images")
    if n := report["decided_images_unhashed"]:
        yield Text(f"Decided with an earlier version, so not known to be the same: {n:,} images")
    if n := report["decisions_unread"]:
        yield Text(f"Decisions that cannot be read, so they do not count: {n:,} lines")
    for one in report["agreement"]["raters"]:
        yield Text(
            f"{one['rater']}: {one['images']:,} decided, {one['kept']:,} kept; as most others "
            f"{one['with_majority']:,} of {one['compared']:,}; α of the others "
            f"{number(one['alpha_without'])}"
        )
    yield Text("α: Krippendorff's, nominal, with its 95 % interval over prompt pairs.")


def _alpha(found: dict[str, Any]) -> str:
    return f"{number(found['value'])} {interval(found['low'], found['high'])}".rstrip()
