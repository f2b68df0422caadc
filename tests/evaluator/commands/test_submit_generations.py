"""`submit --kind generations`: what it takes, what it says, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluator.commands import source as sources
from evaluator.hub.source import HubSource
from tests.evaluator.commands.submitting import Run
from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.evaluator.submission.generations.made_images import made_of_demo
from tests.hub.server import HubServer

KIND = ("--kind", "generations", "--no-wait", "--json")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        parse = partial(HubSource.parse, endpoint=state.endpoint)
        monkeypatch.setattr(sources, "HubSource", SimpleNamespace(parse=parse))
        yield state


def test_an_archive_is_queued_once_and_charged_to_generations(run: Run, tmp_path: Path) -> None:
    path = made_of_demo().zipped(tmp_path / "a.zip")
    first = run("submit", path, *KIND, "--submitter", "Ada's team")
    assert first.code == 0, first.err
    own = first.json["submission"]
    assert (own["kind"], own["name"], own["benchmarks"]) == (
        "generations", "painter", ["demo_prompts"],
    )  # fmt: skip
    assert (own["images"]["present"], own["submitter"]) == (own["images"]["wanted"], "Ada's team")
    again = run("submit", path, *KIND)
    assert "which you sent before" in again.err
    lines = run("quota", "--json").json["standings"]
    assert next(one["unfinished"] for one in lines if one["kind"] == "generations") == 1


def test_private_parquet_takes_its_manifest_from_the_options(run: Run, tmp_path: Path) -> None:
    path = made_of_demo().parquet(tmp_path / "a.parquet")
    named = ("--name", "painter", "--version", "2", "--benchmark", "demo_prompts", "--private")
    done = run("submit", path, *KIND, *named)
    assert done.code == 0, done.err
    own = done.json["submission"]
    assert (own["name"], own["version"], own["private"]) == ("painter", "2", True)


def test_a_dataset_of_the_hub_is_fetched_and_named(
    run: Run, hub: HubServer, tmp_path: Path
) -> None:
    sha = hub.add("ada/images", dict(made_of_demo().all_files())).branches["main"]
    done = run("submit", "hub:datasets/ada/images@main", *KIND)
    assert done.code == 0, done.err
    assert done.json["submission"]["source"] == f"hub:datasets/ada/images@{sha}"
    checked = run("check", "hub:datasets/ada/images@main", "--json")
    assert (checked.code, checked.json["counts"]) == (0, {})


def test_what_is_wrong_is_listed_and_counted(run: Run, tmp_path: Path) -> None:
    one = made_of_demo()
    for name in list(one.files)[:50]:
        del one.files[name]
    done = run("submit", one.folder(tmp_path / "f"), *KIND)
    assert done.code == 1
    assert "50 things are wrong with it" in done.err
    assert "in all 50 missing" in done.err


@pytest.mark.parametrize("more", [("--receipt", "r.json"), ("--lower-is-better", "x")])
def test_options_of_other_kinds_are_refused(
    run: Run, tmp_path: Path, more: tuple[str, ...]
) -> None:
    assert run("submit", made_of_demo().folder(tmp_path / "f"), *KIND, *more).code == 2


def test_images_sent_as_a_metric_are_told_apart(run: Run, tmp_path: Path) -> None:
    done = run("submit", made_of_demo().folder(tmp_path / "f"))
    assert done.code == 2
    assert "--kind generations" in done.err
