"""The simulated models err as documented, and the simulated raters follow their errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean

import pytest

import benchmarks.demo
from benchmarks.demo.load import evalmuse_answers, gecko_answers
from tools.demo_split import ratings
from tools.demo_split.evalmuse import shots
from tools.demo_split.gecko import depictions
from tools.demo_split.models import ERROR_RATES, MODELS, SKILLS, depict
from tools.demo_split.ratings import RATERS
from tools.demo_split.scenes import Chance, Scene, aspects, sample_scene


def scenes(n: int) -> list[Scene]:
    return [sample_scene(Chance("models", i)) for i in range(n)]


@pytest.mark.parametrize("model", MODELS)
def test_measured_error_rates_are_the_documented_ones(model: str) -> None:
    made: Counter[str] = Counter()
    chances: Counter[str] = Counter()
    for i, scene in enumerate(scenes(1500)):
        for skill, (errors, occasions) in depict(
            scene, model, Chance("rates", i)
        ).occasions.items():
            made[skill] += errors
            chances[skill] += occasions
    assert set(chances) == set(SKILLS)
    for skill, n in chances.items():
        rate = ERROR_RATES[model][skill]
        assert abs(made[skill] / n - rate) <= 4 * (rate * (1 - rate) / n) ** 0.5, skill


@pytest.mark.parametrize("card", ["card_evalmuse.toml", "card_gecko.toml"])
def test_the_cards_quote_the_documented_rates(card: str) -> None:
    text = (Path(benchmarks.demo.__file__).parent / card).read_text()
    for said, skill in (("colours go wrong in", "color"), ("counts in", "counting"),
                        ("positions in", "spatial")):  # fmt: skip
        a, b, c, d = (round(100 * ERROR_RATES[model][skill]) for model in MODELS)
        tail = " of all cases" if skill == "color" else ""
        assert f"{said} {a} %, {b} %, {c} % and {d} %{tail}" in text


def test_a_picture_without_errors_is_a_picture_of_the_prompt() -> None:
    for i, scene in enumerate(scenes(300)):
        for model in MODELS:
            depiction = depict(scene, model, Chance("right", i, model))
            assert (depiction.drawn == scene) == (not depiction.wrong)


def test_errors_are_about_claims_that_the_prompt_makes() -> None:
    for i, scene in enumerate(scenes(300)):
        depiction = depict(scene, "demo-delta", Chance("claims", i))
        assert depiction.wrong <= {aspect.id for aspect in aspects(scene)}


def test_what_is_left_out_is_wrong_in_every_respect() -> None:
    seen = 0
    for i, scene in enumerate(scenes(600)):
        depiction = depict(scene, "demo-delta", Chance("missing", i))
        for group in depiction.missing:
            seen += 1
            assert {a.id for a in aspects(scene) if a.group == group} <= depiction.wrong
            assert len(depiction.drawn.groups) >= 1
    assert seen > 10


def test_overall_ratings_fall_with_the_number_of_errors() -> None:
    by_errors: dict[int, list[int]] = {}
    for i, scene in enumerate(scenes(800)):
        depiction = depict(scene, MODELS[i % 4], Chance("falls", i))
        claims = len(aspects(scene))
        for rater in RATERS:
            given = ratings.overall(depiction, claims, rater, Chance("falls", i, rater.id))
            assert 1 <= given <= 5
            by_errors.setdefault(min(depiction.errors, 4), []).append(given)
    means = [mean(by_errors[errors]) for errors in sorted(by_errors)]
    assert means == sorted(means, reverse=True)
    assert means[0] > 4.7
    assert means[-1] < 1.5


def test_raters_seldom_miss_an_error() -> None:
    scene = sample_scene(Chance("raters"))
    right = depict(scene, "demo-alpha", Chance("raters", 1))
    aspect = aspects(scene)[0].id
    for rater in RATERS:
        said = [ratings.holds(right, aspect, rater, Chance(rater.id, i)) for i in range(2000)]
        slips = mean(answer != (aspect not in right.wrong) for answer in said)
        assert abs(slips - rater.slip) < 0.025


def test_evalmuse_labels_follow_the_known_errors() -> None:
    answers = evalmuse_answers()
    labels = dict(zip(answers.images["pair_id"], answers.images["label"], strict=True))
    right = mean(labels[s.path] for s in shots() if s.depiction.errors == 0)
    one = mean(labels[s.path] for s in shots() if s.depiction.errors == 1)
    more = mean(labels[s.path] for s in shots() if s.depiction.errors > 1)
    assert right > one + 0.5 > more + 1.0


def test_side_by_side_votes_prefer_the_picture_with_fewer_errors() -> None:
    given = gecko_answers().ratings
    votes = given[(given["template"] == "SxS") & (given["value"] != "unsure")]
    agreed: list[bool] = []
    for row in votes.itertuples():
        drawn = depictions(str(row.prompt_id))
        a, b = drawn[str(row.model)].errors, drawn[str(row.model_b)].errors
        if a != b:
            agreed.append((str(row.value) == "a") == (a < b))
    assert mean(agreed) > 0.9
