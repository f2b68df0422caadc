"""The cases of a benchmark come into the public store once, and only where answers are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import cases_path, image_cases, read_cases
from benchmarks.schema import Answers
from leaderboard.publication.case_files import CaseFiles
from leaderboard.store.memory import memory_store
from tests.benchmarks.toy import PAIRS, Toy

PATH = cases_path("toy", "1")


class Looked(Toy):
    """The toy with cases."""

    def __init__(self, *, public: bool = True, none: bool = False) -> None:
        self.card = Toy.card.model_copy(update={"answers_public": public})
        self.none = none
        self.made = 0

    def cases(self, answers: Any, data: Path | None) -> pd.DataFrame | None:
        assert isinstance(answers, Answers)
        self.made += 1
        if self.none:
            return None
        expected = np.arange(len(PAIRS), dtype=np.float64)
        return image_cases(PAIRS, ["p"] * 3, expected, ["said"] * 3, texts={"p": "a pixel"})


def test_a_store_without_cases_gets_them_and_one_that_has_them_does_not() -> None:
    public, toy = memory_store().public, Looked()
    files = CaseFiles({"toy": toy}, None)
    found = files.missing(public, ["toy", "toy"])
    assert list(found) == [PATH]
    assert read_cases(found[PATH])["pair_id"].tolist() == list(PAIRS)
    public.commit(found, parent=public.head(), message="cases")
    assert files.missing(public, ["toy"]) == {}
    assert CaseFiles({"toy": Looked()}, None).missing(public, ["toy"]) == {}


def test_a_commit_that_loses_its_race_asks_again_and_nothing_is_made_twice() -> None:
    public, toy = memory_store().public, Looked()
    files = CaseFiles({"toy": toy}, None)
    assert files.missing(public, ["toy"]) == files.missing(public, ["toy"])
    assert toy.made == 1


@pytest.mark.parametrize(("public", "made"), [(False, 0), (True, 1)])
def test_withheld_answers_and_benchmarks_without_cases_have_no_file(
    public: bool, made: int
) -> None:
    toy = Looked(public=public, none=True)
    assert CaseFiles({"toy": toy}, None).missing(memory_store().public, ["toy"]) == {}
    assert toy.made == made
