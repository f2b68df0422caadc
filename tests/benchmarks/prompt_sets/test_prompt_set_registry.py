"""Prompt sets are found in their modules, once each, and printed figures name a model."""

from __future__ import annotations

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.prompt_sets import demo, reference, tifa160
from benchmarks.prompt_sets.registry import find_prompt_set, load_prompt_sets, with_prompt_sets
from benchmarks.published import published


def test_a_declaration_that_is_no_tuple_of_sets_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in ([*demo.PROMPT_SETS], ("demo",)):
        monkeypatch.setattr(demo, "PROMPT_SETS", wrong)
        with pytest.raises(PlatformError, match="no tuple of prompt sets") as found:
            load_prompt_sets()
        assert found.value.code == "invalid_benchmark"


def test_two_sets_of_one_name_are_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tifa160, "PROMPT_SETS", demo.PROMPT_SETS)
    with pytest.raises(PlatformError, match=demo.PROMPT_SETS[0].name) as found:
        load_prompt_sets()
    assert found.value.code == "duplicate_benchmark"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    known = load_prompt_sets()
    for name, one in known.items():
        assert find_prompt_set(known, name) is one
    with pytest.raises(SubmitterError, match="no prompt set 'no such'") as found:
        find_prompt_set(known, "no such")
    assert found.value.code == "unknown_prompt_set"
    assert all(name in found.value.hint for name in known)


def test_a_printed_figure_of_no_model_is_no_row_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    [table] = reference.references_of("evalmuse_ranking")
    cells = [c for c in published() if (c.paper, c.table) == (table.paper, table.table)]
    broken = (cells[0].model_copy(update={"model": None}), *cells[1:])
    monkeypatch.setattr(reference, "published", lambda: broken)
    reference._table.cache_clear()
    try:
        with pytest.raises(ValueError, match="is of no model"):
            reference.references_of("evalmuse_ranking")
    finally:
        reference._table.cache_clear()


def test_a_set_that_is_called_as_a_benchmark_is_an_error_of_ours() -> None:
    sets = load_prompt_sets()
    name, one = next(iter(sets.items()))
    assert with_prompt_sets({"other": one}, sets) == {"other": one, **sets}
    with pytest.raises(PlatformError, match=f"are called {name!r}") as found:
        with_prompt_sets({name: one}, sets)
    assert found.value.code == "duplicate_benchmark"
