"""Comparison of CROC boards: by property, between models, between metrics, and people in three set-ups."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from benchmarks.arrays import FloatArray
from benchmarks.croc.load import CrocAnswers, PromptPair, pair_id
from benchmarks.croc.measures import DIRECTIONS
from benchmarks.croc.protocol import CrocHum
from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.croc_syn.protocol import CrocSyn
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from benchmarks.statistics.raters import krippendorff_alpha
from evaluator.__main__ import command_line
from evaluator.croc.boards import PROPERTY_GROUPS, CrocBoard, Values, board_of
from evaluator.croc.comparison import BoardComparison, ComparisonReport, compare_boards, tau_of
from evaluator.croc.human_check import read_human_check
from tests.benchmarks.croc_syn import syn_tree
from tests.evaluator.croc.folders import decide_all, hum_folder, review_of, syn_folder
from tests.kit.refusals import refused

METRICS = ("m1", "m2", "m3", "m4")
LEAVES = ("Left-of", "Above", "Geometric", "Organic", "Red")


def random_scores(
    pair_ids: tuple[str, ...], seed: int, names: tuple[str, ...] = METRICS
) -> ScoreTable:
    """The further on, the more a metric knows of which text belongs to an image."""
    rng = np.random.default_rng(seed)
    fits = np.array(
        [("prompt" in i.split("contrast_prompts")[0]) == i.endswith("orig") for i in pair_ids]
    )
    columns = {
        name: rng.normal(size=len(pair_ids)) + 0.4 * n * fits for n, name in enumerate(names)
    }
    return ScoreTable(pd.DataFrame(columns, index=list(pair_ids)))


def hum(names: tuple[str, ...] = METRICS, seed: int = 1) -> tuple[CrocHum, CrocAnswers, ScoreTable]:
    pairs = tuple(
        PromptPair(
            f"{category}_{n}", category, f"{category} {n}", f"no {category} {n}",
            tuple(f"{category}_{n}_prompt_{k}" for k in range(3)),
            tuple(f"{category}_{n}_other_{k}" for k in range(2)),
        )
        for category, n in product(("shapes", "spacial_relation", "counting"), range(6))
    )  # fmt: skip
    ids = tuple(pair_id(s, t) for p in pairs for s in p.images for t in ("orig", "contrast"))
    answers = CrocAnswers(ids, tuple(p.id for p in pairs), pairs)
    return CrocHum(), answers, random_scores(ids, seed, names)


def syn(folder: Path, seed: int = 2) -> tuple[CrocSyn, CrocSynAnswers, ScoreTable]:
    lines = [
        syn_tree.line(f"subject_property|||S|||{leaf}", [f"{leaf} {n}" for n in range(4)])
        for leaf in LEAVES
    ]
    lines += [
        syn_tree.line(mode, [f"x {n}" for n in range(4)]) for mode in (syn_tree.EV, syn_tree.EP)
    ]
    folder.mkdir()
    syn_tree.write(folder, syn_tree.same_everywhere(*lines))
    benchmark = syn_tree.benchmark(2)
    answers = benchmark.answers(folder)
    return benchmark, answers, random_scores(answers.pair_ids, seed)


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> tuple[CrocBoard, CrocBoard]:
    folder = tmp_path_factory.mktemp("boards") / "syn"
    (b1, a1, s1), (b2, a2, s2) = hum(), syn(folder)
    return board_of(b1, s1, a1), board_of(b2, s2, a2)


@pytest.fixture(scope="module")
def compared(boards: tuple[CrocBoard, CrocBoard]) -> BoardComparison:
    return compare_boards(boards)


def slow_accuracy(rows: FloatArray, direction: str) -> FloatArray:
    """Share of rows (R, 2 sides, K, 2 texts, M) that are right, rule by rule."""
    own = int(direction.startswith("inverse"))
    right = []
    for row in np.moveaxis(rows, -1, 0).reshape(-1, *rows.shape[1:-1]):
        match, other = row[own, :, own], row[own, :, 1 - own]
        if direction.endswith("text"):
            best = int(match.argmax())
            right.append(match[best] > other[best])
        else:
            right.append(match.max() > row[1 - own, :, own].max())
    return np.asarray(np.array(right, float).reshape(rows.shape[-1], -1).mean(axis=1))


def slow_scale(accuracy: FloatArray, direction: str) -> FloatArray:
    chance = 5 / 6 if direction.endswith("text") else 1 / 2
    return np.array([(a - chance) / (chance if a <= chance else 1 - chance) for a in accuracy])


def test_cells_and_properties_of_a_synthetic_board_equal_the_slow_rules(tmp_path: Path) -> None:
    benchmark, answers, scores = syn(tmp_path / "syn")
    board = board_of(benchmark, scores, answers)
    values = scores.overall.to_numpy().reshape(len(answers.prompts), 2, 2, 2, len(METRICS))
    table = answers.prompts
    assert board.synthetic and board.n_clusters == len(answers.clusters)

    def accuracy(chosen: pd.Series, direction: str) -> FloatArray:
        of_text = [
            slow_accuracy(values[(chosen & (table["text_model"] == text)).to_numpy()], direction)
            for text in ("ds", "qwen")
        ]
        return np.asarray(np.mean(of_text, axis=0))

    for (mode, direction), found in board.cells.items():
        np.testing.assert_allclose(
            found.value, accuracy(table["mode"] == mode, direction), atol=1e-12
        )
    assert len(board.cells) == 12
    wanted = {
        "spacial_relation": ["Left-of", "Above"], "shapes": ["Geometric", "Organic"], "red": ["Red"],
        "above": ["Above"],
    }  # fmt: skip
    for (key, leaves), way in product(wanted.items(), ("text", "image")):
        chosen = table["property"].isin(leaves)
        both = [slow_scale(accuracy(chosen, d), d) for d in (f"forward_{way}", f"inverse_{way}")]
        np.testing.assert_allclose(
            board.properties[key, way].value, np.mean(both, axis=0), atol=1e-12
        )
    assert ("action", "text") not in board.properties
    image = np.stack([
        accuracy((table["mode"] == m) & (table["image_model"] == "sd"), d)
        for m in ("entity_variation", "entity_placement", "subject_property") for d in DIRECTIONS
    ])  # fmt: skip
    np.testing.assert_allclose(board.models["image model"]["sd"].value, image, atol=1e-12)


def test_a_human_supervised_board_has_the_cells_of_its_rows() -> None:
    benchmark, answers, scores = hum()
    board = board_of(benchmark, scores, answers)
    rows = benchmark.measure(scores, answers, benchmark.plan(answers)).rows
    assert not board.synthetic and board.models == {} and len(board.cells) == 12
    for (category, direction), found in board.cells.items():
        told = [
            row.value for row in rows
            if (row.measure, row.skill, row.facet, row.split) == ("accuracy", category, direction, None)
        ]  # fmt: skip
        assert found.value.tolist() == told
    assert board.properties["shapes", "image"].resamples.shape == (1000, 4)


def plain_tau(one: FloatArray, other: FloatArray) -> float:
    """Kendall's tau-b of accuracies, which are equal where they differ by rounding alone."""
    return float(stats.kendalltau(np.round(one, 9), np.round(other, 9)).statistic)


def test_boards_agree_by_property_and_over_all_with_intervals(
    boards: tuple[CrocBoard, CrocBoard], compared: BoardComparison
) -> None:
    a, b = boards
    (pair,) = compared.agreements
    assert (pair.boards, list(pair.by_property)) == (
        ("croc_hum", "croc_syn"),
        ["shapes", "spacial_relation"],
    )
    assert pair.alone[0] == ("counting",) and {"red", "left_of", "entity_variation"} <= set(
        pair.alone[1]
    )
    for way in ("text", "image"):
        both = [[of.properties[key, way] for key in pair.by_property] for of in (a, b)]
        for key, first, second in zip(pair.by_property, *both, strict=True):
            tau = pair.by_property[key][way]
            assert tau.value == pytest.approx(plain_tau(first.value, second.value))
            assert tau.low <= tau.value <= tau.high and tau.n == 4
        rows = [np.concatenate([one.value for one in of]) for of in both]
        assert pair.overall[way].value == pytest.approx(plain_tau(*rows))
        assert pair.overall[way].n == 8


def test_an_interval_is_that_of_tau_in_each_resample(boards: tuple[CrocBoard, CrocBoard]) -> None:
    first, second = (board.properties["shapes", "image"] for board in boards)
    drawn = [
        plain_tau(x, y) for x, y in zip(first.resamples[:300], second.resamples[:300], strict=True)
    ]
    parts = (Values(one.value, one.resamples[:300]) for one in (first, second))
    found = tau_of(*parts)
    assert [found.low, found.high] == pytest.approx(list(np.nanquantile(drawn, [0.025, 0.975])))


def test_two_synthetic_boards_are_compared_by_single_properties(
    boards: tuple[CrocBoard, CrocBoard],
) -> None:
    _, b = boards
    (pair,) = compare_boards([b, b]).agreements
    assert "spacial_relation" not in pair.by_property and "left_of" in pair.by_property
    assert pair.overall["text"].value == 1.0 and pair.alone == ((), ())


def test_own_properties_are_compared_even_where_they_are_called_like_groups(tmp_path: Path) -> None:
    lines = [
        json.dumps(json.loads(syn_tree.line(f"subject_property|||S|||{leaf}", ["a", "b"])) | {"skill": "Color"})
        for leaf in ("Action", "Shapes", "Geometric")
    ]  # fmt: skip
    syn_tree.write(tmp_path, syn_tree.same_everywhere(*lines))
    benchmark = syn_tree.benchmark(2)
    answers = benchmark.answers(tmp_path)
    board = board_of(benchmark, random_scores(answers.pair_ids, 1), answers)
    (pair,) = compare_boards([board, board]).agreements
    assert list(pair.by_property) == ["action", "shapes", "geometric"]


def test_stability_is_told_between_text_models_image_models_and_all_four(
    compared: BoardComparison, boards: tuple[CrocBoard, CrocBoard]
) -> None:
    kinds = [one.kind for one in compared.stabilities]
    assert [
        kinds.count(kind) for kind in ("text model", "image model", "image and text model")
    ] == [1, 1, 6]
    first = compared.stabilities[0]
    values = [boards[1].models["text model"][name].value.ravel() for name in first.models]
    assert first.models == ("ds", "qwen") and first.tau.n == 12 * 4
    assert first.tau.value == pytest.approx(plain_tau(*values))
    assert first.tau.low <= first.tau.value <= first.tau.high


def test_metrics_are_compared_over_the_cells_of_each_board(
    compared: BoardComparison, boards: tuple[CrocBoard, CrocBoard]
) -> None:
    for found, board in zip(compared.between_metrics, boards, strict=True):
        cells = np.stack([one.value for one in board.cells.values()])
        for i, j in product(range(4), range(4)):
            assert found.taus[i][j].value == pytest.approx(plain_tau(cells[:, i], cells[:, j]))
        assert found.n_cells == found.taus[0][1].n == 12


def test_only_metrics_that_all_boards_have_are_compared(
    boards: tuple[CrocBoard, CrocBoard],
) -> None:
    benchmark, answers, scores = hum(("m4", "m2", "other"))
    found = compare_boards([board_of(benchmark, scores, answers), boards[1]])
    assert (found.metrics, found.left_out) == (
        ("m4", "m2"),
        {"croc_hum": ("other",), "croc_syn": ("m1", "m3")},
    )
    np.testing.assert_array_equal(
        found.boards[1].cells["entity_variation", "forward_text"].value,
        boards[1].cells["entity_variation", "forward_text"].value[[3, 1]],
    )
    benchmark, answers, scores = hum(("m4", "x"))
    with refused("too_few_metrics", "1 in common"):
        compare_boards([board_of(benchmark, scores, answers), boards[1]])


def test_missing_scores_are_counted_and_cells_without_images_left_out() -> None:
    benchmark, answers, scores = hum()
    scores.overall.iloc[:3, 0] = np.nan
    bare = [p for p in answers.prompt_pairs if p.category == "counting"]
    pairs = tuple(
        PromptPair(p.id, p.category, p.prompt, p.contrast, p.original_images, ())
        if p in bare
        else p
        for p in answers.prompt_pairs
    )
    board = board_of(benchmark, scores, CrocAnswers(answers.pair_ids, answers.clusters, pairs))
    assert board.n_missing == {"m1": 3, "m2": 0, "m3": 0, "m4": 0}
    assert ("counting", "forward_text") in board.cells and (
        "counting",
        "inverse_text",
    ) not in board.cells


def test_what_is_no_board_of_croc_or_compares_images_is_refused() -> None:
    demo = load_registry()["demo_evalmuse"]
    with refused("no_croc_board", "demo_evalmuse"):
        board_of(demo, ScoreTable(pd.DataFrame()), demo.answers(None))
    benchmark, answers, scores = hum()
    margins = ScoreTable(scores.overall, margins={"m1": pd.DataFrame()})
    with refused("compares_images", "m1"):
        board_of(benchmark, margins, answers)


def test_a_model_without_prompts_of_some_mode_is_told(tmp_path: Path) -> None:
    pv, ev = (syn_tree.line(one, ["a", "b"]) for one in (syn_tree.PV, syn_tree.EV))
    lines = syn_tree.same_everywhere(pv, ev) | {("sd", "qwen"): [pv]}
    syn_tree.write(tmp_path, lines)
    benchmark = syn_tree.benchmark(2)
    answers = benchmark.answers(tmp_path)
    board = board_of(benchmark, random_scores(answers.pair_ids, 1), answers)
    assert board.incomplete == ("sd and qwen",)
    assert len(board.models["image and text model"]) == 3


def test_groups_are_properties_of_the_taxonomy() -> None:
    leaves = [leaf for leaves in PROPERTY_GROUPS.values() for leaf in leaves]
    assert len(leaves) == len(set(leaves)) == 18


# People.

ROWS = [
    # setup, item, rater, intended, chosen
    ("1", "a", "x", "prompt", "prompt"), ("1", "a", "y", "prompt", "prompt"),
    ("1", "b", "x", "prompt", "contrast"), ("1", "b", "y", "prompt", "prompt"),
    ("1", "c", "x", "contrast", "contrast"),
    ("2", "a", "x", "prompt", "contrast"),
    ("3", "a", "x", "prompt", "prompt"), ("3", "b", "x", "contrast", "prompt"),
    ("3", "b", "y", "contrast", "prompt"), ("3", "b", "z", "contrast", "contrast"),
]  # fmt: skip


def labels(folder: Path, rows: Sequence[tuple[str, ...]], *more: str) -> Path:
    path = folder / "labels.csv"
    names = ["setup", "item", "rater", "intended", "chosen", *more]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)
    return path


def test_majorities_are_compared_with_what_is_intended_by_set_up_and_way(tmp_path: Path) -> None:
    found = read_human_check(labels(tmp_path, ROWS), 200)
    figures = {one.name: (one.accuracy, one.items, one.ties) for one in found.figures}
    assert figures == {
        "setup 1, forward": (0.75, 2, 1), "setup 1, inverse": (1.0, 1, 0),
        "setup 2, forward": (0.0, 1, 0),
        "setup 3, forward": (1.0, 1, 0), "setup 3, inverse": (0.0, 1, 0),
        "text, forward": (1.0, 1, 0), "text, inverse": (0.0, 1, 0),
        "image, forward": (0.375, 3, 1), "image, inverse": (1.0, 1, 0),
    }  # fmt: skip
    assert (found.raters, found.choices, found.planted) == (3, 10, None)
    units = [[1, 1], [0, 1], [1, 1, 0]]
    table = np.full((3, 3), np.nan)
    for row, unit in enumerate(units):
        table[row, : len(unit)] = unit
    assert found.alpha.value == pytest.approx(krippendorff_alpha(table, "nominal"))
    assert found.alpha.units == 3 and list(found.alphas) == ["1", "2", "3"]


def test_intervals_of_people_are_over_items_and_scaled_by_a_guess_between_two(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    right = rng.random(200) < 0.8
    rows = [
        ("3", str(n), "x", "prompt", "prompt" if r else "contrast") for n, r in enumerate(right)
    ]
    (figure, text) = read_human_check(labels(tmp_path, rows)).figures
    assert (figure.name, text.name) == ("setup 3, forward", "text, forward")
    share, spread = right.mean(), 1.96 * right.std() / math.sqrt(200)
    assert figure.accuracy == pytest.approx(share) and figure.scaled == pytest.approx(2 * share - 1)
    assert [figure.low, figure.high] == pytest.approx([share - spread, share + spread], abs=0.012)


def test_planted_items_count_in_no_other_figure(tmp_path: Path) -> None:
    rows = [(*row, "no") for row in ROWS] + [("1", "p", "x", "prompt", "contrast", "yes")]
    found = read_human_check(labels(tmp_path, rows, "planted"), 50)
    assert found.planted is not None and (found.planted.accuracy, found.planted.items) == (0.0, 1)
    assert {one.name: one.items for one in found.figures}["setup 1, forward"] == 2


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [("4", "a", "x", "prompt", "left")],
            ["data row 1: setup is '4'", "data row 1: chosen is 'left'"],
        ),
        ([("1", "", " ", "prompt", "prompt")], ["no item", "no rater"]),
        ([ROWS[0], ROWS[0]], ["data row 2: the rater's second"]),
        ([ROWS[0], ("1", "a", "y", "contrast", "prompt")], ["data row 1: other rows"]),
        ([], ["no rows"]),
    ],
)
def test_labels_that_cannot_be_read_are_told_row_by_row(
    tmp_path: Path, rows: list[tuple[str, ...]], says: list[str]
) -> None:
    with refused("bad_labels", *says):
        read_human_check(labels(tmp_path, rows))
    (tmp_path / "labels.csv").write_text("setup,item\n1,a\n")
    with refused("missing_columns", "rater, intended, chosen"):
        read_human_check(tmp_path / "labels.csv")
    with refused("file_missing", "absent.csv"):
        read_human_check(tmp_path / "absent.csv")


# Report and command.


def test_the_report_holds_every_figure_for_programs_and_stands_alone(
    compared: BoardComparison, tmp_path: Path
) -> None:
    report = ComparisonReport(compared, read_human_check(labels(tmp_path, ROWS), 50))
    figures = json.loads(json.dumps(report.figures, allow_nan=False))
    assert figures["between_metrics"][0]["taus"][0][1]["n"] == 12
    assert figures["people"]["figures"][0]["scaled"] == 0.5
    page = report.html
    assert page.count('class="heat"') == 2 and "src=" not in page and "http" not in page
    assert page.count("<tr>") > 30


def test_names_in_a_report_are_text(boards: tuple[CrocBoard, CrocBoard]) -> None:
    benchmark, answers, scores = hum(("<script>", "m2"))
    page = ComparisonReport(compare_boards([board_of(benchmark, scores, answers)])).html
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_equal_accuracies_have_no_tau(boards: tuple[CrocBoard, CrocBoard]) -> None:
    one = boards[0].properties["shapes", "text"]
    flat = Values(np.ones(4), np.ones((1000, 4)))
    found = tau_of(one, flat)
    assert math.isnan(found.value) and math.isnan(found.low)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Scores files of two boards with cards of their own."""
    folder = tmp_path_factory.mktemp("own")
    made = {"my_hum": hum_folder(folder / "hum"), "my_syn": syn_folder(folder / "syn")}
    for name, source in made.items():
        decide_all(review_of(source), "Ada", lambda _: True)
        words = ["croc", "review-export", str(source), "--out", str(folder / "boards" / name)]
        assert CliRunner().invoke(command_line(), words).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_BENCHMARKS", str(folder / "boards"))
        found = {}
        for name in made:
            pair_ids = load_registry()[name].answers(None).pair_ids
            table = random_scores(pair_ids, 3).overall.rename_axis("pair_id").reset_index()
            found[name] = folder / f"{name}.csv"
            table.to_csv(found[name], index=False)
        yield found


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(command_line(), ["croc", "compare", *map(str, words)])
    return result.exit_code, result.output, getattr(result.exception, "code", "")


def test_the_command_compares_boards_of_ones_own(tmp_path: Path, files: Mapping[str, Path]) -> None:
    given = [word for name, path in files.items() for word in ("--scores", f"{name}={path}")]
    out = tmp_path / "report.html"
    people = ["--labels", labels(tmp_path, ROWS)]
    code, printed, _ = run(*files, *given, *people, "--out", out)
    assert code == 0, printed
    for word in ("my_hum and my_syn", "between metrics", "text, inverse", "Only on my_syn: red"):
        assert word in printed, printed
    assert out.read_text().startswith("<!doctype html>")
    assert run(*files, *given, "--out", out)[2] == "file_exists"
    code, printed, _ = run("my_hum", *given[:2], "--json", "--lower-is-better", "m2")
    assert code == 0 and json.loads(printed)["agreements"] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["my_hum", "my_syn", "--scores", "my_hum={0}"], "no_scores"),
        (["my_hum", "--scores", "{0}"], "bad_scores_option"),
        (["my_hum", "--scores", "other={0}"], "bad_scores_option"),
        (["my_hum", "--scores", "my_hum={0}", "--scores", "my_hum={0}"], "same_metric"),
        (["my_hum", "--scores", "my_hum={0}", "--lower-is-better", "x"], "unknown_metric"),
        (["nowhere", "--scores", "nowhere={0}"], "unknown_benchmark"),
    ],
)
def test_what_cannot_be_compared_is_told(
    files: Mapping[str, Path], words: list[str], code: str
) -> None:
    assert run(*(word.format(files["my_hum"]) for word in words))[2] == code
