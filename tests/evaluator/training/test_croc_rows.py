"""Rows of CROCScore: which captions, with which image, from the layouts of CROC_syn and CROC_hum."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.schema import Answers, Questions
from evaluator.training.croc.rows import Caption, RowChoice, captions_of
from evaluator.training.data import TrainingData, part_of
from tests.benchmarks.croc import croc_tree as hum
from tests.benchmarks.croc_syn import syn_tree as syn
from tests.evaluator.scorers.common import refusal

PROPERTY, PLACED, VARIED = "subject_property", "entity_placement", "entity_variation"


def caption(text: str, mode: str = PROPERTY, images: int = 3) -> Caption:
    its = [tuple(f"{text}/{side}{k}" for k in range(images)) for side in "oc"]
    return Caption(text, mode, its[0], its[1], f"not {text}")


POOL = [
    *(caption(f"property {n}") for n in range(40)),
    *(caption(f"placed {n}", PLACED) for n in range(30)),
    *(caption(f"varied {n}", VARIED) for n in range(30)),
]


def test_all_properties_and_some_placed_entities_are_taken_each_with_one_side() -> None:
    rows, dropped = RowChoice(entities=10).rows(POOL)
    kinds = Counter(row.caption.split()[0] for row in rows)
    assert kinds == {"property": 40, "placed": 10}
    assert dropped == {"caption not drawn": 50}
    assert len({row.caption for row in rows}) == 50
    assert all(row.image == f"{row.caption}/{'o' if row.shows else 'c'}0" for row in rows)
    assert 10 <= sum(row.shows for row in rows) <= 40


def test_half_of_many_rows_show_their_caption() -> None:
    rows, _ = RowChoice().rows([caption(f"{n}") for n in range(16_500)])
    assert len(rows) == 16_000
    assert abs(sum(row.shows for row in rows) - 8_000) < 4 * 63.2  # standard deviations of a coin


def test_the_released_choice_takes_the_first_varied_entities() -> None:
    rows, _ = RowChoice(entities=3, released=True).rows(POOL)
    others = {row.caption for row in rows if not row.caption.startswith("property")}
    assert others == {"varied 0", "varied 1", "varied 2"}


def test_more_images_of_a_caption_are_all_of_one_side() -> None:
    rows, _ = RowChoice(entities=0, images=2).rows(POOL)
    assert len(rows) == 80
    assert len({(row.caption, row.shows) for row in rows}) == 40


def test_what_is_left_out_is_counted() -> None:
    captions = [
        caption("a dog"),
        caption("A  DOG"),
        caption("ａ dog", PLACED),
        caption("  "),
        Caption("a cat", PROPERTY, (), ("c",), "no cat"),
    ]
    rows, dropped = RowChoice().rows(captions)
    assert [row.caption for row in rows] == ["a dog"]
    assert dropped == {
        "caption that came before": 2,
        "blank caption": 1,
        "images of one side alone": 1,
    }


def test_the_draw_depends_on_its_seed_alone() -> None:
    """Python draws another hash seed for each run, so fixed rows are those of every hash seed."""
    rows, _ = RowChoice(entities=5, most=6).rows(POOL)
    assert all(row.made_of == "not " * (not row.shows) + row.caption for row in rows)
    assert [(row.caption, row.shows) for row in rows] == [
        ("property 29", True),
        ("property 34", True),
        ("placed 14", False),
        ("property 23", False),
        ("property 26", True),
        ("property 21", False),
    ]
    assert RowChoice(entities=5, most=6, seed=7).rows(POOL)[0] != rows


def syn_data(folder: Path, n_images: int = 2) -> TrainingData:
    lines = [
        syn.line(syn.PV, ["a red dog", "", "a red cat"]),
        syn.line(syn.EP, ["a choir"]),
        syn.line(syn.EV, ["Ada"]),
    ]
    syn.write(folder, dict.fromkeys(syn.FILES[:3], lines))
    benchmark = syn.benchmark(n_images)
    answers = benchmark.answers(folder)
    for one in answers.pair_ids:
        place = folder / "croc_syn" / "images" / f"{one.rpartition('|')[0]}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return TrainingData(benchmark, benchmark.questions(folder), answers)


def test_a_prompt_pair_of_croc_syn_gives_both_captions_with_images_of_both_sides(
    tmp_path: Path,
) -> None:
    data = syn_data(tmp_path)
    captions = captions_of(data.answers, data.questions)
    assert [(one.mode, one.text) for one in captions[:4]] == [
        (PROPERTY, "a red dog"), (PROPERTY, "not a red dog"),
        (PROPERTY, "a red cat"), (PROPERTY, "not a red cat"),
    ]  # fmt: skip
    assert len(captions) == 3 * 8
    stem = "flux/ds/{}/subject_property_____Wild_Animals_____Red_{}_2_image_{}"
    original = tuple(stem.format("prompts", "prompt", k) for k in range(2))
    contrast = tuple(stem.format("contrast_prompts", "contrast", k) for k in range(2))
    assert (captions[2].matching, captions[2].contrast) == (original, contrast)
    assert (captions[2].other, captions[3].other) == ("not a red cat", "a red cat")
    assert (captions[3].matching, captions[3].contrast) == (contrast, original)
    rows, _ = RowChoice().rows(captions)
    assert {row.image.split("/")[0] for row in rows} == {"flux"}  # the first that has the caption


def test_a_part_of_croc_syn_is_the_benchmark_of_these_clusters(tmp_path: Path) -> None:
    data = syn_data(tmp_path)
    answers = data.answers
    assert isinstance(answers, CrocSynAnswers)
    chosen = [one for one in answers.clusters if "Red" not in one]
    part = part_of(answers, frozenset(chosen))
    assert part.clusters == tuple(chosen)
    assert all(("Choir" in one or "Ada" in one) for one in part.pair_ids)
    assert len(part.pair_ids) == 8 * len(part.prompts) == 8 * 6
    assert sorted(set(part.prompts["cluster"])) == [0, 1]
    assert sorted(set(part.prompts["group"])) == list(range(6))
    kept = data.part(chosen)
    scores = iter(np.linspace(0, 1, len(kept.questions.pairs)))
    of_pair = {pair.pair_id: next(scores) for pair in kept.questions.pairs}
    assert set(of_pair) == set(part.pair_ids)
    training, held_out = data.split(0.5, 0)
    assert not set(training.answers.clusters) & set(held_out.answers.clusters)


def test_a_prompt_pair_of_croc_hum_gives_both_captions(tmp_path: Path) -> None:
    table = hum.metadata()
    hum.unpack(hum.write(tmp_path, table), "", table)
    benchmark = hum.benchmark()
    answers, questions = benchmark.answers(tmp_path), benchmark.questions(tmp_path)
    captions = captions_of(answers, questions)
    assert [(one.text, len(one.matching), len(one.contrast)) for one in captions] == [
        ('A "hand" with only its index finger red.', 2, 1),
        ("A hand with only its ring finger red.", 1, 2),
        ("A dog and a cat.", 1, 2), ("A dog and no cat.", 2, 1),
        ("A dog and a cat.", 1, 0), ("A cat left of a dog.", 0, 1),
    ]  # fmt: skip
    assert all(set(one.matching) <= set(questions.images) for one in captions)
    assert all(one.mode == "" for one in captions)


def test_data_without_contrast_pairs_is_refused() -> None:
    with refusal("unfit_data", "contrasting"):
        captions_of(Answers((), ()), Questions({}, {}, ()))
