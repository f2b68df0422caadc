"""Who judges models, from a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.commands.judges import in_role
from leaderboard.ledger.chronicle import verify
from leaderboard.models.board_memory import BoardMemory
from leaderboard.models.board_selection import BLIND
from leaderboard.models.judges import Judging
from leaderboard.models.pins import PATH, Pins
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.evaluator.commands.submitting import Run
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting

SET = "demo_prompts"


@pytest.fixture(name="begun")
def _begun(run: Run) -> Run:
    """A store in which something was done."""
    assert run("ban", "local:mallory", "--reason", "labels").code == 0
    return run


def test_without_boards_nobody_judges_and_the_rule_is_shown(begun: Run) -> None:
    shown = begun("judges", SET)
    assert shown.code == 0 and "no metric earned trust" in shown.out
    assert "A metric judges a skill if" in shown.out
    assert {one["skill"] for one in begun("judges", SET, "--json").json["skills"]} >= {
        None,
        "count",
    }


@pytest.mark.slow
def test_a_decision_is_public_is_in_the_ledger_and_can_be_taken_back(begun: Run) -> None:
    words = ("vqa", "--skill", "count", "--prompt-set", SET)
    made = begun("pin", "vqa", "distrust", *words[1:], "--reason", "trained on it", user="root")
    assert made.code == 0
    (pin,) = begun("judges", SET, "--json").json["pins"]
    assert (pin["metric"], pin["skill"], pin["verdict"]) == ("vqa", "count", "distrust")
    assert (pin["reason"], pin["by"]) == ("trained on it", "local:root")
    told = begun("ledger", "--subject", "vqa")
    assert told.code == 0 and "judges vqa by local:root: trained on it" in told.out
    assert begun("unpin", *words, "--reason", "a mistake").code == 0
    assert begun("judges", SET, "--json").json["pins"] == []
    assert begun("unpin", *words, "--reason", "again").code == 1
    assert begun("ledger").code == 0


def test_a_decision_that_nobody_made_breaks_the_ledger(begun: Run, tmp_path: Path) -> None:
    begun("pin", "vqa", "trust", "--reason", "known")
    public = folder_store(tmp_path / "store").public
    assert verify(public) == ()
    transact(public, lambda: {PATH: b'{"pins": []}'}, "by hand")
    assert any(PATH in problem for problem in verify(public))


@pytest.mark.parametrize(
    "words",
    [
        ("pin", "vqa", "maybe", "--reason", "r"),
        ("pin", "vqa", "trust", "--reason", " "),
        ("pin", "", "trust", "--reason", "r"),
        ("pin", "vqa", "trust", "--reason", "r", "--prompt-set", "unheard"),
        ("pin", "vqa", "trust", "--reason", "r", "--skill", "unheard"),
        ("judges", "unheard"),
        ("judges", SET, "--skill", "unheard"),
    ],
)
def test_what_does_not_exist_is_refused_in_words(begun: Run, words: tuple[str, ...]) -> None:
    refused = begun(*words)
    assert refused.code == 1 and refused.err


def test_a_metric_blind_to_the_images_judges_no_more_here_than_on_the_board() -> None:
    made = World(prompt_set(prompts_of(20)), trusting("vqa/vqa", "clip/clip"))
    rng = np.random.default_rng(1)
    blind = rng.uniform(size=20)
    for model, n in (("a", 6), ("b", 1)):
        made.add(model, {"vqa/vqa": rng.uniform(size=(n, 20)), "clip/clip": np.tile(blind, (n, 1))})
    judging = Judging(made.view, made.known.card, Pins(), BoardMemory())
    found = {one.entry_id: one for one in in_role(judging, made.reader, None, made.metrics)}
    assert found["vqa/vqa"].trusted and not found["clip/clip"].trusted
    assert found["clip/clip"].why == BLIND
