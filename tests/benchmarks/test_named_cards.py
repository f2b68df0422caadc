"""Cards that an operator names are boards; what lies beside them is data, never code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants

from benchmarks.errors import SubmitterError
from benchmarks.named_cards import card_at, named_benchmarks
from benchmarks.problems import ProblemsError
from benchmarks.registry import load_registry
from benchmarks.sources.remote import Hub
from tests.benchmarks.families.cards import LABELS, RATED, with_keys, write_card
from tests.kit.hub.server import HubServer
from tests.kit.refusals import refused

REPO = "somebody/cards"


def named(folder: Path, name: str, **files: str) -> Path:
    return write_card(folder, with_keys(RATED, {"name": name}), labels_csv=LABELS, **files)


@pytest.mark.parametrize("place", ["{0}", "{0}/one", "{0}/one/card.toml"])
def test_a_card_or_a_folder_with_cards_is_in_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    named(tmp_path / "one", "one")
    named(tmp_path / "two", "two")
    monkeypatch.setenv("ASSAY_BENCHMARKS", f" {place.format(tmp_path)} , {tmp_path}/two/card.toml ")
    if place == "{0}":
        monkeypatch.setenv("ASSAY_BENCHMARKS", str(tmp_path))
    registry = load_registry()
    assert {"one", "two"} <= registry.keys()
    assert registry["one"].answers(None).pair_ids == ("a.png", "b.png", "c.png")
    assert set(load_registry(cards=())) == set(registry) - {"one", "two"}


WRONG: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "nothing there": (lambda at: None, "invalid_benchmark", "holds no card.toml"),
    "code beside the card": (
        lambda at: named(at / "x", "x", protocol_py="raise SystemExit"),
        "invalid_benchmark", "protocol.py lies beside",
    ),
    "name of a benchmark": (lambda at: named(at, "ts2"), "duplicate_benchmark", "'ts2'"),
    "name of a prompt set": (lambda at: named(at, "gecko_s"), "duplicate_benchmark", "'gecko_s'"),
    "one name twice": (
        lambda at: (named(at / "x", "x"), named(at / "y", "x")), "duplicate_benchmark", "'x'",
    ),
    "card that is none": (
        lambda at: (at / "card.toml").write_text("name = \n"), "invalid_benchmark", "card.toml:1: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_board_is_refused(tmp_path: Path, case: str) -> None:
    make, code, says = WRONG[case]
    make(tmp_path)
    with refused(code, says, str(tmp_path)) as caught:
        load_registry(cards=[str(tmp_path)])
    assert isinstance(caught.value, SubmitterError)


def test_problems_of_all_cards_are_told_at_once(tmp_path: Path) -> None:
    write_card(tmp_path / "a", with_keys(RATED, {"kind": "beauty", "title": None}))
    write_card(tmp_path / "b", with_keys(RATED, {"gold": {"mean": {"scale": [5, 1]}}}))
    with refused("invalid_benchmark") as caught:
        list(named_benchmarks([str(tmp_path / "a"), str(tmp_path / "b"), "hub:a/b"]))
    assert isinstance(caught.value, ProblemsError)
    places = [Path(one.file).parent.name for one in caught.value.problems]
    assert places == ["a", "a", "b", ""]


def test_a_link_beside_a_card_that_leads_out_of_its_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text(LABELS)
    write_card(tmp_path / "mine", RATED)
    (tmp_path / "mine" / "labels.csv").symlink_to("../secret.csv")
    (benchmark,) = named_benchmarks([str(tmp_path / "mine")])
    assert not benchmark.has_answers(None)
    with refused("data_malformed", "labels.csv is a link"):
        benchmark.answers(None)


def test_a_folder_may_hold_several_cards(tmp_path: Path) -> None:
    named(tmp_path, "one").rename(tmp_path / "card_first.toml")
    named(tmp_path, "two")
    assert [one.name for one in named_benchmarks([str(tmp_path)])] == ["two", "one"]


def test_several_cards_are_not_one(tmp_path: Path) -> None:
    paths = [named(tmp_path / name, name) for name in ("a", "b")]
    assert card_at(str(tmp_path / "b")) == paths[1]
    with refused("no_card", "2 cards"):
        card_at(str(tmp_path))


# A repository of the Hub.


@pytest.fixture
def pinned(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Place of a card in a folder of a repository."""
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
    card = named(tmp_path / "made", "from_hub").read_bytes()
    files = {"mine/card.toml": card, "mine/labels.csv": LABELS.encode(), "other.txt": b"x"}
    return f"hub:{REPO}@{hub.add(REPO, files).branches['main']}/mine"


def test_a_card_in_a_repository_is_a_board_and_the_hub_is_asked_once(
    hub: HubServer, pinned: str
) -> None:
    for _ in range(2):
        (benchmark,) = named_benchmarks([pinned], Hub(hub.endpoint))
        assert benchmark.name == "from_hub" and len(benchmark.answers(None).pair_ids) == 3
        asked = len(hub.asked(""))
    assert asked == len(hub.asked("")) and not hub.asked("other.txt")


def test_a_repository_without_its_whole_commit_is_refused(hub: HubServer, pinned: str) -> None:
    for place in (f"hub:{REPO}", f"hub:{REPO}@main", pinned.replace("@", "@x"), f"{pinned}/../y"):
        with pytest.raises(SubmitterError) as caught:
            card_at(place, Hub(hub.endpoint))
        assert caught.value.code in ("no_card", "data_malformed")


def test_a_card_of_gigabytes_is_not_fetched(
    hub: HubServer, pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.named_cards._LARGEST_FILE", 10)
    with refused("too_large", "mine/card.toml"):
        card_at(pinned, Hub(hub.endpoint))
    assert not hub.asked("resolve")
