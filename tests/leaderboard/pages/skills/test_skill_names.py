"""Skills of different benchmarks under one name."""

from __future__ import annotations

from benchmarks.prompt_sets.registry import load_prompt_sets, with_prompt_sets
from benchmarks.registry import load_registry
from leaderboard.pages.skills.names import common_key, common_names, found_by, skills_of
from tests.leaderboard.pages.skills.skills_fixture import cards, skills_view_of


def test_every_key_of_the_table_is_a_skill_that_a_card_of_its_family_names() -> None:
    of_family: dict[str, set[str]] = {}
    for benchmark in with_prompt_sets(load_registry(), load_prompt_sets()).values():
        of_family.setdefault(benchmark.card.family, set()).update(benchmark.card.skills)
    for name, common in common_names().items():
        for family, keys in common.keys.items():
            assert set(keys) <= of_family[family], (name, family)


def test_no_key_has_two_names() -> None:
    seen = [
        (f, k) for name in common_names().values() for f, keys in name.keys.items() for k in keys
    ]
    assert len(seen) == len(set(seen))


def test_skills_that_cards_name_differently_stand_together() -> None:
    counting = skills_of(skills_view_of().boards)["counting"]
    found = {(part.benchmark, part.key) for part in counting.parts}
    assert {("croc", "counting"), ("gecko", "count"), ("evalmuse", "counting")} <= found


def test_an_unknown_key_stands_for_itself_and_joins_nothing() -> None:
    skills = skills_of(skills_view_of().boards)
    own = skills["evalmuse.a.-h."]
    assert [part.key for part in own.parts] == ["a./h."]
    assert common_key(cards()["evalmuse"], "a./h.") is None


def test_words_find_a_skill() -> None:
    skills = skills_of(skills_view_of().boards)
    for words, key in (
        ("how many", "counting"), ("Numbers", "counting"), ("count", "counting"),
        ("left of", "spatial"), ("spatial relations", "spatial"), ("not", "negation"),
    ):  # fmt: skip
        found = found_by(words, skills)
        assert found is not None and found.key == key, words
    assert found_by("zzz", skills) is None
    assert found_by("", skills) is None
