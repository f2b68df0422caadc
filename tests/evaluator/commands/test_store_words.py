"""Commands that are printed to be copied open the store that was used."""

from __future__ import annotations

import pytest

from evaluator.commands.common import DEFAULT_STORE, store_words
from leaderboard.store.opening import StoreName


def test_a_store_that_is_named_by_option_is_named_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_STORE", raising=False)
    assert store_words(StoreName("hub:lab/board")) == " --store hub:lab/board"
    assert store_words(StoreName("my store")) == " --store 'my store'"
    assert store_words(DEFAULT_STORE) == ""


def test_a_store_that_the_environment_names_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_STORE", "hub:lab/board")
    assert store_words(StoreName("hub:lab/board")) == ""
    assert store_words(DEFAULT_STORE) == " --store .assay/store"
