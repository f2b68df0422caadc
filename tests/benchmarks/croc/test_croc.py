"""CROC_hum: the released table, its images, score files of the runner, and the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.croc.load import (
    CrocAnswers,
    PromptPair,
    app,
    generator,
    pair_id,
    read_score_files,
)
from benchmarks.croc.measures import DIRECTIONS, LONG, SHORT, compare, length_split, scale
from benchmarks.croc.protocol import CARD, CELLS, MEASURES, CrocHum
from benchmarks.errors import SubmitterError
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.croc.croc_tree import (
    SD,
    benchmark,
    cell,
    image,
    metadata,
    unpack,
    with_two_of_negation,
    write,
)
from tests.kit.checks import row_of
from tests.kit.refusals import refused


def test_a_released_table_becomes_prompt_pairs_with_images_of_both_sides(tmp_path: Path) -> None:
    answers = benchmark().answers(write(tmp_path, metadata()))
    hand, negation, spatial = answers.prompt_pairs
    assert (hand.category, spatial.category) == ("body_parts", "spacial_relation")
    assert hand.prompt.startswith('A "hand" with')
    stems = (f"body_parts_1___prompt___{SD}___image4", "body_parts_1___prompt___gpt4___image1")
    assert hand.original_images == stems
    alone = tuple(f"negation_1___alt_contrast___FLUX_1_schnell___image{k}" for k in (1, 2))
    assert negation.contrast_images == alone  # of "A" alone
    assert spatial.contrast_images == ()
    assert generator("x___FLUX_1_dev___image1") == "flux"


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "[]", "['']"])
def test_a_missing_list_and_an_empty_one_are_no_images(tmp_path: Path, empty: str) -> None:
    data = write(tmp_path, cell("prompt_paths", empty)(metadata()))
    assert benchmark().answers(data).prompt_pairs[1].original_images == ()


def test_pairs_of_negation_may_share_images_which_count_for_each(tmp_path: Path) -> None:
    shared = [image("negation_1", "alt_contrast", 1), image("negation_2", "alt_contrast", 9)]
    table = with_two_of_negation(shared)
    data = write(tmp_path, table)
    answers = benchmark(**{"prompt pairs": 4, "images": 10}).answers(data)
    stem = "negation_1___alt_contrast___FLUX_1_schnell___image1"
    assert answers.prompt_pairs[1].contrast_images[0] == stem
    assert answers.prompt_pairs[3].contrast_images[0] == f"{stem}@negation_2"
    assert len(set(answers.pair_ids)) == 20
    assert answers.counts()["images"] == answers.counts()["flux: images"] + 2 == 10
    unpack(data, "", table)
    questions = benchmark().questions(data)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    asked = {pair.pair_id: pair for pair in questions.pairs}
    first, further = asked[f"{stem}|contrast"], asked[f"{stem}@negation_2|contrast"]
    assert first.image_id == further.image_id == stem
    texts = [questions.texts[pair.text_id] for pair in (first, further)]
    assert texts == [table["contrast"][1], table["contrast"][3]]
    assert len(questions.images) == 9


@pytest.mark.parametrize("below", ["", "croc_hum", "some_archive_root", "images"])
def test_images_are_beside_the_table_or_in_one_folder_below(tmp_path: Path, below: str) -> None:
    assert [f.path for f in CARD.files if f.unpack] == ["croc_hum/croc_hum.tar.gz"]
    data = tmp_path / "images" / "here"  # such a folder of data must not matter
    data.mkdir(parents=True)
    write(data, metadata())
    unpack(data, below, metadata())
    (data / "croc_hum" / ".croc_hum.tar.gz.unpacking" / "counting").mkdir(parents=True)
    assert benchmark().has_questions(data)
    questions = benchmark().questions(data)
    first, second = questions.pairs[:2]
    assert first.image_id == second.image_id
    assert questions.images[first.image_id]() == image("body_parts_1", "prompt", 4, SD).encode()
    texts = [questions.texts[pair.text_id] for pair in (first, second)]
    assert texts == [metadata()[side].iloc[0] for side in ("prompt", "contrast")]


Table = pd.DataFrame
ORIG, CONTRAST = "VQAScore___orig_text___orig_img", "VQAScore___contrast_text___orig_img"


def prompt_table(category: str, scores: list[float | None]) -> Table:
    paths = [f"data/{category}/prompt/{category}_1___prompt___m___image{k}.jpg" for k in (1, 2)]
    cells = {"prompt_paths": paths, ORIG: scores, CONTRAST: [0.25, 0.5]}
    return pd.DataFrame({"id": f"{category}_1", **cells})


def contrast_table(category: str) -> Table:
    cells = {
        "contrast_paths": [f"{category}/contrast/{category}_1___contrast___m___image1.png"],
        "VQAScore___contrast_text___contrast_img": [3.0],
        "VQAScore___orig_text___contrast_img": [4.0],
    }
    return pd.DataFrame({"id": f"{category}_1", **cells})


def write_scores(folder: Path, tables: dict[str, Table]) -> Path:
    for name, table in tables.items():
        table.to_csv(folder / f"{name}_img_scores.tsv", sep="\t", index=False)
    return folder


def both(category: str, *scores: float | None) -> dict[str, Table]:
    prompt, contrast = prompt_table(category, list(scores)), contrast_table(category)
    return {f"{category}_prompt": prompt, f"{category}_contrast": contrast}


def test_each_score_finds_its_image_and_text(tmp_path: Path) -> None:
    write_scores(tmp_path, {**both("counting", 1.0, None), **both("body_parts", 5.0, 6.0)})
    (tmp_path / "notes.tsv").write_text("nothing of interest")
    table = read_score_files(tmp_path).set_index("pair_id")
    assert list(table.columns) == ["VQAScore"]
    found = table["VQAScore"].to_dict()
    assert len(found) == 12
    expected = {
        "counting_1___prompt___m___image1|orig": 1.0,
        "counting_1___prompt___m___image1|contrast": 0.25,
        "counting_1___contrast___m___image1|contrast": 3.0,
        "counting_1___contrast___m___image1|orig": 4.0,
        "body_parts_1___prompt___m___image2|orig": 6.0,
    }
    assert expected.items() <= found.items()
    assert np.isnan(found["counting_1___prompt___m___image2|orig"])


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_the_command_writes_over_no_other_file_and_no_input(tmp_path: Path, name: str) -> None:
    write_scores(tmp_path, both("counting", 1.0, 2.0))
    out, given = tmp_path / name, tmp_path / "counting_prompt_img_scores.tsv"
    out.write_text("mine")
    before = given.read_bytes()
    for words, code in (([out], "file_exists"), ([given, "--force"], "output_is_input")):
        result = CliRunner().invoke(app, [str(tmp_path), "--out", *map(str, words)])
        assert isinstance(result.exception, SubmitterError)
        assert result.exception.code == code
    assert (out.read_text(), given.read_bytes()) == ("mine", before)
    result = CliRunner().invoke(app, [str(tmp_path), "--out", str(out), "--force"])
    assert result.exit_code == 0
    assert "6 pairs" in result.output
    written = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    assert list(written.columns) == ["pair_id", "VQAScore"]
    pd.testing.assert_frame_equal(written, read_score_files(tmp_path))


def test_an_image_shared_by_pairs_of_negation_has_a_name_for_each(tmp_path: Path) -> None:
    stem = "negation_1___alt___m___image1"
    shared = pd.concat([contrast_table("negation")] * 2).assign(
        id=["negation_1", "negation_2"], contrast_paths=f"negation/alt/{stem}.png"
    )
    tables = both("negation", 1.0, 2.0) | {"negation_contrast": shared}
    found = set(read_score_files(write_scores(tmp_path, tables))["pair_id"])
    assert {f"{stem}|orig", f"{stem}|contrast", f"{stem}@negation_2|orig"} < found
    write_scores(tmp_path, {"negation_contrast": shared.assign(id="negation_1")})
    with refused("duplicate_pairs"):
        read_score_files(tmp_path)


PROMPT = prompt_table("counting", [1.0, 2.0])
OTHER = PROMPT.rename(columns=lambda c: c.replace("VQAScore", "Clip"))


@pytest.mark.parametrize(
    ("prompt", "code", "says"),
    [
        (PROMPT.drop(columns=ORIG), "no_scores", ORIG),
        (PROMPT.drop(columns=[ORIG, CONTRAST]), "no_scores", "score column"),
        (OTHER, "no_scores", "counting_contrast"),
        (PROMPT.drop(columns="prompt_paths"), "missing_columns", "prompt_paths"),
        (b"\xff\xfe", "unreadable_file", "counting_prompt"),
        (PROMPT.iloc[[0, 0]], "duplicate_pairs", "image1|orig"),
        (PROMPT.assign(**{ORIG: ["1.0", "much"]}), "not_numeric", "'much'"),
        (PROMPT.assign(**{ORIG: ["inf", "1"]}), "not_numeric", "'inf'"),
    ],
)
def test_a_wrong_score_file_is_refused(
    tmp_path: Path, prompt: Table | bytes, code: str, says: str
) -> None:
    write_scores(tmp_path, both("counting", 1.0, 2.0))
    if isinstance(prompt, bytes):
        (tmp_path / "counting_prompt_img_scores.tsv").write_bytes(prompt)
    else:
        write_scores(tmp_path, {"counting_prompt": prompt})
    with refused(code, says):
        read_score_files(tmp_path)


def test_an_absent_score_file_is_named(tmp_path: Path) -> None:
    with refused("file_missing", str(tmp_path)):
        read_score_files(tmp_path)
    with refused("file_missing", "counting_contrast_img_scores.tsv"):
        read_score_files(write_scores(tmp_path, {"counting_prompt": PROMPT}))


NAN = float("nan")
Scores = tuple[list[float], ...]


def prompt_pair(name: str, n_original: int, n_contrast: int) -> PromptPair:
    return PromptPair(
        id=name,
        category=name.rpartition("_")[0],
        prompt="a",
        contrast="b",
        original_images=tuple(f"{name}-o{i}" for i in range(n_original)),
        contrast_images=tuple(f"{name}-c{i}" for i in range(n_contrast)),
    )


def answers_of(pairs: Iterable[PromptPair]) -> CrocAnswers:
    pairs = tuple(pairs)
    stems = [stem for pair in pairs for stem in (*pair.original_images, *pair.contrast_images)]
    ids = tuple(pair_id(stem, text) for stem in stems for text in ("orig", "contrast"))
    return CrocAnswers(ids, tuple(pair.id for pair in pairs), pairs)


def one_pair_scores(*scores: list[float]) -> tuple[ScoreTable, CrocAnswers]:
    """Scores of a single prompt pair: images O with both texts, then images C."""
    o_orig, o_contrast, c_orig, c_contrast = scores
    answers = answers_of([prompt_pair("x_1", len(o_orig), len(c_orig))])
    values = np.r_[np.ravel([o_orig, o_contrast], "F"), np.ravel([c_orig, c_contrast], "F")]
    return ScoreTable(pd.DataFrame({"m": values}, index=list(answers.pair_ids))), answers


def random_case(seed: int) -> tuple[ScoreTable, CrocAnswers, ResamplingPlan]:
    rng = np.random.default_rng(seed)
    sizes = {"shapes": 4, "counting": 2, "negation": 6}
    pairs = [
        prompt_pair(f"{category}_{k}", int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        for category, n in sizes.items()
        for k in range(n)
    ]
    pairs += [prompt_pair("shapes_90", 2, 0), prompt_pair("counting_91", 0, 3)]
    answers = answers_of(pairs)
    values = rng.integers(0, 6, (len(answers.pair_ids), 3)).astype(float)
    values[rng.random(values.shape) < 0.05] = NAN
    frame = pd.DataFrame(values, index=list(answers.pair_ids), columns=["m0", "m1", "m2"])
    return ScoreTable(frame), answers, ResamplingPlan(answers.clusters, 7, 20)


def rows_of(values: object, answers: CrocAnswers, seed: int = 2, n_resamples: int = 40) -> Measured:
    frame = pd.DataFrame({"m0": values}, index=list(answers.pair_ids), dtype=np.float64)
    plan = ResamplingPlan(answers.clusters, seed, n_resamples)
    return CrocHum().measure(ScoreTable(frame), answers, plan)


def slow_accuracy(
    scores: pd.Series, answers: CrocAnswers, direction: str, draws: dict[str, float] | None = None
) -> dict[str, float]:
    """Category means by the formulas of the paper, prompt pairs repeated as drawn."""

    def m(stem: str, text: str) -> float:
        return float(scores[f"{stem}|{text}"])

    by_category: dict[str, list[float]] = {}
    for pair in answers.prompt_pairs:
        o, c = pair.original_images, pair.contrast_images
        right = {
            "forward_text": [m(i, "orig") > m(i, "contrast") for i in o],
            "inverse_text": [m(i, "contrast") > m(i, "orig") for i in c],
            "forward_image": [m(i, "orig") > m(j, "orig") for i in o for j in c],
            "inverse_image": [m(i, "contrast") > m(j, "contrast") for i in c for j in o],
        }[direction]
        times = 1 if draws is None else int(draws[pair.id])
        if right:
            by_category.setdefault(pair.category, []).extend([float(np.mean(right))] * times)
    return {category: float(np.mean(v)) for category, v in by_category.items() if v}


FIGURE_6 = (
    [13.9, 14.4, 14.1, 13.7, 12.8],
    [14.3, 14.7, 14.6, 14.6, 13.7],
    [14.9, 15.2, 15.7, 13.9, 14.6],
    [12.7, 13.0, 13.9, 11.7, 12.5],
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (FIGURE_6, (0.0, 0.0, 2 / 25, 1 / 25)),  # AlignScore
        (([18.3, 16.8], [0, 0], [17.2, 18.2], [0, 0]), (1.0, 0.0, 0.5, 0.0)),  # Figure 7
        (([1], [1], [1], [1]), (0.0,) * 4),  # a tie is a failure
    ],
)
def test_directions_of_one_pair(scores: Scores, expected: tuple[float, ...]) -> None:
    table, answers = one_pair_scores(*scores)
    found = compare(table, answers).values()
    assert [o.accuracy.item() for o in found] == pytest.approx(expected)


def test_a_missing_score_is_a_failure_and_is_counted() -> None:
    scores, answers = one_pair_scores([2, NAN], [1, 1], [0], [3])
    measured = rows_of(scores.overall["m"], answers)
    row = row_of(measured, measure="accuracy", facet="forward_text")
    assert (row.value, row.n_items, row.n_missing) == (0.5, 2, 1)
    assert "failures: 1" in row.note
    summary = row_of(measured, measure="scaled_accuracy", facet=None, variant="assay")
    assert summary.n_missing == 1


@pytest.mark.slow
def test_values_and_resamples_equal_the_slow_formulas() -> None:
    scores, answers, plan = random_case(3)
    measured = CrocHum().measure(scores, answers, plan)
    for metric, direction in product(scores.metrics, DIRECTIONS):
        wanted = {"metric": metric, "measure": "accuracy", "facet": direction}
        row = row_of(measured, **wanted)
        column = scores.overall[metric]
        categories = slow_accuracy(column, answers, direction)
        assert row.value == pytest.approx(np.mean(list(categories.values())))
        for category, value in categories.items():
            assert row_of(measured, skill=category, **wanted).value == pytest.approx(value)
        for b, found in enumerate(measured.resamples[measured.rows.index(row)]):
            draws = dict(zip(plan.clusters, plan.counts[b], strict=True))
            drawn = slow_accuracy(column, answers, direction, draws)
            assert found == pytest.approx(np.mean(list(drawn.values())), abs=1e-6)
    one = {"metric": "m0", "measure": "scaled_accuracy"}
    for facet, directions in CELLS.items():
        first, second = (slow_accuracy(scores.overall["m0"], answers, d) for d in directions)
        expected = {k: first[k] + second[k] - 1 for k in first}
        cell = row_of(measured, facet=facet, **one)
        assert cell.value == pytest.approx(np.mean(list(expected.values())))
        for category, value in expected.items():
            found = row_of(measured, facet=facet, skill=category, **one).value
            assert found == pytest.approx(value)
    for skill in (None, "shapes", "counting", "negation"):
        cells = [row_of(measured, facet=f, skill=skill, **one) for f in ("text", "image")]
        summary = row_of(measured, facet=None, variant="assay", skill=skill, **one)
        assert summary.value == pytest.approx(np.mean([cell.value for cell in cells]))
        drawn, *parts = (measured.resamples[measured.rows.index(row)] for row in (summary, *cells))
        np.testing.assert_allclose(drawn, np.mean(parts, axis=0), atol=1e-6)


def test_every_row_is_explained_and_carries_an_interval_and_its_clusters() -> None:
    scores, answers, plan = random_case(8)
    measured = CrocHum().measure(scores, answers, plan)
    for row in measured.rows:
        assert (row.benchmark, row.revision, row.split) == (CARD.name, CARD.revision, None)
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in CARD.facets
        assert row.ci_low <= row.ci_high
    wanted = {"metric": "m0", "measure": "accuracy", "facet": "inverse_image"}
    row = row_of(measured, skill="negation", **wanted)
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters == 6
    assert behind["value"].mean() == pytest.approx(row.value)


def test_long_and_short_prompts_are_also_measured_apart() -> None:
    short = [prompt_pair("a_1", 1, 1), prompt_pair("b_1", 1, 1)]
    long = replace(prompt_pair("a_2", 1, 1), prompt="x" * 281)
    answers = answers_of([*short, long])
    right = [float(pair.startswith("a_2") and "orig" in pair) for pair in answers.pair_ids]
    measured = rows_of(right, answers)

    def value(split: str | None, skill: str | None) -> float:
        wanted = {"measure": "accuracy", "facet": "forward_text", "split": split, "skill": skill}
        return row_of(measured, **wanted).value

    assert (value("over_280", None), value("up_to_280", None)) == (1.0, 0.0)
    assert (value(None, "a"), value("over_280", "a"), value("up_to_280", "a")) == (0.5, 1.0, 0.0)
    assert not [row for row in measured.rows if row.split == "over_280" and row.skill == "b"]


def test_where_all_prompts_are_long_there_is_no_row_for_short_ones() -> None:
    pairs = [replace(prompt_pair(name, 1, 1), prompt="x" * 281) for name in ("a_1", "b_1")]
    rows = rows_of(0.5, answers_of(pairs)).rows
    assert {row.split for row in rows} == {None, "over_280"}
    whole = [replace(row, split=None) for row in rows if row.split == "over_280"]
    assert [row.to_json() for row in whole] == [row.to_json() for row in rows if not row.split]


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing_is_never_right(score: float) -> None:
    for row in rows_of(score, random_case(2)[1]).rows:
        assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
        assert (row.n_missing > 0) == np.isnan(score)


def test_a_category_without_the_images_compared_is_left_out_and_named() -> None:
    answers = answers_of(
        [prompt_pair("a_1", 2, 2), prompt_pair("a_2", 1, 2), prompt_pair("b_1", 2, 0)]
    )
    measured = rows_of(np.arange(len(answers.pair_ids), dtype=float), answers)
    rows = {(r.measure, r.facet, r.skill): r for r in measured.rows}
    left_out = "images to compare: b"
    assert left_out not in rows["accuracy", "forward_text", None].note
    for key in (("accuracy", "inverse_text", None), ("scaled_accuracy", "text", None)):
        assert left_out in rows[key].note
    assert rows["scaled_accuracy", "text", None].value == rows["scaled_accuracy", "text", "a"].value
    undefined = rows["scaled_accuracy", "text", "b"]
    assert np.isnan(undefined.value)
    assert undefined.note.startswith("undefined")
    absent = rows["accuracy", "inverse_text", "b"]
    assert np.isnan(absent.value)
    assert (absent.n_items, absent.n_clusters, bool(absent.note)) == (0, 0, True)


def test_no_prompt_pairs_are_no_rows() -> None:
    assert rows_of(pd.Series(dtype=float), answers_of([])).rows == ()


@pytest.mark.parametrize(
    ("accuracy", "scaled"),
    [
        *((0.0, -1.0), (0.4, -0.52), (5 / 6, 0.0), (0.9, 0.4), (1.0, 1.0)),
        # CROC Table 1, forward text-based: printed values and the accuracies they stand for.
        *((0.8418, 0.051), (0.9172, 0.503), (0.5792, -0.305), (0.9942, 0.965)),
    ],
)
def test_text_based_accuracies_have_zero_at_five_sixths(accuracy: float, scaled: float) -> None:
    assert round(float(scale(accuracy, 5 / 6)), 3) == scaled


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.99))
def test_scaling_never_turns_the_order_round(a: float, b: float, chance: float) -> None:
    low, high = sorted((a, b))
    assert -1.0 <= scale(low, chance) <= scale(high, chance) <= 1.0
    assert scale(a, 0.5) == 2.0 * a - 1.0
    np.testing.assert_array_equal(
        scale(np.array([[0.0, NAN], [0.5, 1.0]]), 0.5), [[-1, NAN], [0, 1]]
    )


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.1, NAN])
def test_a_guess_that_is_always_or_never_right_has_no_scale(chance: float) -> None:
    with pytest.raises(ValueError, match="between"):
        scale(0.5, chance)


def test_a_prompt_of_280_characters_is_short_and_one_more_makes_it_long() -> None:
    assert (length_split("x" * 280), length_split("x" * 281)) == (SHORT, LONG)
    assert length_split("é" * 280) == SHORT  # characters, not bytes
