"""`votes`: people's votes on models, which operators open, close, publish and export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table
from leaderboard.governance.authentication import this_person

if TYPE_CHECKING:
    from leaderboard.models.reading import ModelReader
    from leaderboard.store.interface import Store
    from leaderboard.votes.results import VoteResults

app = typer.Typer(help="People's votes on the images of models.")
SetName = Annotated[str, typer.Argument(help="Prompt set.", metavar="SET")]


@app.command("open")
def open_vote(
    prompt_set: SetName,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Submission to compare; repeatable. Without it, all with pictures."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="CSV of pairs with a known answer: prompt_id, better, worse."),
    ] = None,
    gold_share: Annotated[
        float | None,
        typer.Option(min=0, max=0.5, help="Share of ballots that are gold pairs; at first 0.05."),
    ] = None,
    repeat_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=0.5, help="Share that repeats a ballot of the voter; at first 0.05."
        ),
    ] = None,
    failure_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.2,
            help="Largest share on prompts where metrics disagree; never ranked; at first 0.",
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Let signed-in people vote on the images of a prompt set, or go on with other models or shares.

    Gold pairs and shares that are not given stay as they were.

    Example: python -m evaluator votes open demo_prompts --failure-share 0.1
    """
    from leaderboard.votes.polls import open_poll, read_gold  # noqa: PLC0415
    from leaderboard.votes.records import Shares  # noqa: PLC0415
    from leaderboard.votes.storing import read_poll  # noqa: PLC0415

    place = store.existing()
    before = read_poll(place.private, prompt_set)
    shares = before.shares if before else Shares()
    given = {"gold": gold_share, "repeat": repeat_share, "failure": failure_share}
    poll = open_poll(
        place,
        _reader(place, data),
        prompt_set,
        this_person(operator=True),
        chosen=model or (),
        gold=read_gold(gold) if gold else None,
        shares=shares.model_copy(
            update={name: share for name, share in given.items() if share is not None}
        ),
    )
    said = f"Open: {prompt_set}, {len(poll.models)} models, {len(poll.gold)} gold pairs."
    console().print(Text(f"{said} People vote at /vote/{prompt_set} of the site."))


@app.command()
def close(prompt_set: SetName, store: StoreOption = DEFAULT_STORE) -> None:
    """Issue no more ballots; those that were issued can still be answered.

    Example: python -m evaluator votes close demo_prompts
    """
    from leaderboard.votes.polls import close_poll  # noqa: PLC0415

    place = store.existing()
    close_poll(place, prompt_set, this_person(operator=True), place.clock())
    console().print(Text(f"Closed: {prompt_set}."))


@app.command()
def status(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """List the votes of a store: open or not, how many, and the revisions that were published.

    Example: python -m evaluator votes status
    """
    from leaderboard.votes.revisions import revisions  # noqa: PLC0415
    from leaderboard.votes.storing import poll_names, poll_of, read_votes  # noqa: PLC0415

    place = store.existing()
    found: list[dict[str, Any]] = []
    for name in poll_names(place.private):
        poll, votes = poll_of(place.private, name), read_votes(place.private, name)
        found.append(
            {
                "prompt_set": name,
                "open": poll.is_open,
                "models": len(poll.models),
                "votes": len(votes),
                "raters": len({vote.ballot.account for vote in votes}),
                "revisions": list(revisions(place.public, name)),
            }
        )
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    heads = ("Prompt set", "Open", "Models", "Votes", "Raters", "Revisions")
    rows = [
        (
            one["prompt_set"],
            "yes" if one["open"] else "no",
            *(str(one[key]) for key in ("models", "votes", "raters")),
            ", ".join(map(str, one["revisions"])) or "–",
        )
        for one in found
    ]
    made = table(heads, rows)
    console().print(made)


@app.command()
def cut(
    prompt_set: SetName, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False
) -> None:
    """Publish the votes so far, without names, as a revision with its board.

    Example: python -m evaluator votes cut demo_prompts
    """
    from leaderboard.votes.revisions import cut as publish  # noqa: PLC0415
    from leaderboard.votes.service import VOTES, commit_journals  # noqa: PLC0415

    place = store.existing()
    commit_journals(place, store.folder / VOTES)
    results = publish(place, prompt_set, this_person(operator=True))
    if as_json:
        typer.echo(results.model_dump_json(indent=1))
        return
    _print(results)


@app.command()
def export(
    prompt_set: SetName,
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    name: Annotated[
        str, typer.Option(help="Name of the benchmark: small letters, digits and _.")
    ] = "",
    revision: Annotated[int, typer.Option(min=0, help="Of the votes; 0: the latest.")] = 0,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
) -> None:
    """Make a benchmark of metrics out of a published revision: card, votes and pictures.

    Example: python -m evaluator votes export demo_prompts --out boards/demo_votes
    """
    from benchmarks.errors import SubmitterError  # noqa: PLC0415
    from benchmarks.prompt_sets.prompt_set import find_prompt_set  # noqa: PLC0415
    from leaderboard.models.pictures import ModelPictures  # noqa: PLC0415
    from leaderboard.votes.benchmark import export as write  # noqa: PLC0415
    from leaderboard.votes.revisions import read_results, read_table  # noqa: PLC0415

    place = store.existing()
    reader = _reader(place, data)
    known = find_prompt_set(reader.prompt_sets, prompt_set)
    results = read_results(place.public, prompt_set, revision)
    if results is None:
        raise SubmitterError(
            "no_revision",
            f"There is no revision {revision or ''} of the votes on {prompt_set}.".replace(
                "  ", " "
            ),
            "Publish one: python -m evaluator votes cut SET.",
        )
    named = name or f"{prompt_set}_votes_{results.number}"
    title = f"Votes on {known.card.title}, revision {results.number}"
    content = read_table(place.public, prompt_set, results.number)
    prompts = reader.prompts(prompt_set) or ()
    pictures = ModelPictures(reader, place.public)
    made = write(results, content, known, prompts, pictures, out=out, named=(named, title))
    said = f"{out}: {made.votes} votes on {made.images} images."
    left = f" {made.left_out} votes are left out: their images or prompts are gone."
    console().print(Text(said + (left if made.left_out else "")), soft_wrap=True)


def _reader(store: Store, data: Path | None) -> ModelReader:
    from benchmarks.prompt_sets.prompt_set import load_prompt_sets  # noqa: PLC0415
    from leaderboard.models.reading import ModelReader  # noqa: PLC0415

    return ModelReader(store, load_prompt_sets(), data)


def _print(results: VoteResults) -> None:
    from leaderboard.text import count, interval, number, ranks  # noqa: PLC0415

    rows = [
        (
            ranks(one.rank_low, one.rank_high),
            one.title,
            f"{one.n_votes:,}",
            number(one.strength, 2),
            interval(one.strength_low, one.strength_high, 2),
        )
        for one in results.models
    ]
    made = table(("Ranks", "Model", "Votes", "Strength", "95 %"), rows)
    console().print(made)
    said = (
        f"Revision {results.number}: {count(results.n_votes, 'vote')} of {count(results.n_raters, 'rater')}. "
        f"Left out: {count(results.n_left_out, 'vote')} of {count(results.n_careless, 'careless rater')}, "
        f"{results.n_of_banned} of {count(results.n_banned, 'banned one')}, and {results.n_off_boards} on models "
        f"that are not on the boards. The table lacks {count(results.n_withheld, 'vote')} on gold pairs."
    )
    console().print(Text(said), soft_wrap=True)
