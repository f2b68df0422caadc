"""Review of CROC images: what is looked through, decisions that last, orders, agreement, export to a board."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import astuple
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc.protocol import CrocHum
from benchmarks.croc_syn.protocol import card_text
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from benchmarks.statistics.raters import krippendorff_alpha
from evaluator.__main__ import command_line
from evaluator.croc.agreement import agreement_of, alpha_of
from evaluator.croc.decisions import DecisionLog, decided
from evaluator.croc.review import FARTHEST, NEAREST, Review
from evaluator.croc.review_export import Rule, fate_of, kept_images
from evaluator.croc.review_set import categories_of, read_review_set
from tests.benchmarks.croc_syn.syn_tree import line
from tests.evaluator.croc.folders import (
    PAIRS,
    TABLE,
    decide_all,
    hum_folder,
    place,
    png,
    review_of,
    syn_folder,
)
from tests.kit.refusals import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pairs in the layout of CROC_hum."""
    return hum_folder(tmp_path / "hum")


@pytest.fixture
def review(folder: Path) -> Review:
    return review_of(folder)


# What is looked through.


def test_both_layouts_are_read_with_property_and_images(tmp_path: Path) -> None:
    hum = read_review_set(hum_folder(tmp_path / "hum"))
    assert [(p.id, p.category, list(map(len, p.images))) for p in hum.pairs] == [
        ("counting_1", "counting", [2, 3]), ("shapes_1", "shapes", [2, 1]),
        ("negation_1", "negation", [1, 1]),
    ]  # fmt: skip
    assert hum.properties["counting"].title == "Counting" and hum.properties["counting"].asks
    assert (hum.n_images, hum.missing) == (10, ())
    definitions = {"Red": "The main thing is red."}
    syn = read_review_set(syn_folder(tmp_path / "syn"), definitions)
    assert [(p.id, p.texts[0], list(map(len, p.images))) for p in syn.pairs] == [
        ("red_1", "A red cat.", [2, 2]), ("entity_variation_1", "Ada at sea.", [2, 2]),
    ]  # fmt: skip
    assert (syn.properties["red"].title, syn.properties["red"].asks) == ("Red", definitions["Red"])
    first = syn.pairs[0]
    assert first.place(1, first.images[1][1]) == "red/contrast/red_1___contrast___flux___image2.png"


def test_a_card_tells_which_models_a_set_has(tmp_path: Path) -> None:
    folder = syn_folder(tmp_path / "syn")
    (folder / "images/flux/ds").rename(folder / "images/flux/qwen3")
    file = folder / "3_extracted_prompts_flux_ds.jsonl"
    file.rename(folder / "3_extracted_prompts_flux_qwen3.jsonl")
    told = {"summary": "x", "description": "y", "revision": "1"}
    card = card_text("shoes", "Shoes", [("flux", "qwen3")], ["Color"], 2, **told)
    (folder / "card.toml").write_text(card)
    assert [pair.id for pair in read_review_set(folder).pairs] == ["red_1", "entity_variation_1"]


def test_what_is_not_there_or_leads_out_is_told_and_not_shown(tmp_path: Path, folder: Path) -> None:
    gone, linked = (place("counting_1", "contrast", k) for k in (1, 2))
    (folder / gone).unlink()
    (folder / linked).rename(tmp_path / "secret.png")
    (folder / linked).symlink_to(tmp_path / "secret.png")
    found = read_review_set(folder)
    assert found.missing == (gone, linked)
    assert [len(side) for side in found.pairs[0].images] == [2, 1]


def without_images(folder: Path) -> Path:
    for image in hum_folder(folder).rglob("*.png"):
        image.unlink()
    return folder


def other_card(folder: Path) -> Path:
    folder.mkdir()
    (folder / "card.toml").write_text("name = 3")
    return folder


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda at: at.mkdir() or at, "no_croc_data"),
        (without_images, "nothing_to_review"),
        (other_card, "invalid_benchmark"),
    ],
)
def test_a_folder_without_croc_images_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], code: str
) -> None:
    with refused(code):
        read_review_set(make(tmp_path / "x"))


@pytest.mark.parametrize(
    ("leaves", "plain"),
    [
        (["Red", "Left-of", "Rule_of_Thirds", "3D_Rendering", "Bowl_(Kitchens)"],
         ["red", "left_of", "rule_of_thirds", "3d_rendering", "bowl_kitchens"]),
        (["红色", "蓝色", "Größe", "Gro\u0308ße"], ["红色", "蓝色", "", ""]),
        (["C", "C++", "C#", "+++"], ["c", "", "", ""]),
        (["Left-of", "left_of", "Near"], ["", "", "near"]),
        (["Size", "Size_4", "Size_4x", "Part_4"], ["size", "", "size_4x", "part_4"]),
        (["Size", "Size_4", "Size_4_5"], ["size", "", ""]),
        (["Entity_placement", "Still_images"], ["", ""]),
        (["हिन्दी", "हिन्दू"], ["", ""]),
    ],
)  # fmt: skip
def test_every_property_has_a_category_of_its_own(leaves: list[str], plain: list[str]) -> None:
    """Empty: its name with a hash."""
    tested = [("subject_property", leaf) for leaf in leaves] + [("entity_placement", "")]
    found = categories_of(tested)
    assert len(set(found.values())) == len(tested)
    assert found["entity_placement", ""] == "entity_placement"
    for one, wanted in zip(tested, plain, strict=False):
        key = found[one]
        assert key == wanted or (not wanted and re.fullmatch(r"\w+_x[0-9a-f]{8}", key)), key
        shadowed = [other for other in found.values() if f"{key}_99".startswith(other)]
        assert max(shadowed, key=len) == key


PROPERTIES = {
    "红色": "It is red.",
    "蓝色": "It is blue.",
    "C": "c",
    "C#": "c#",
    "Size": "s",
    "Size_4": "s4",
}


def property_folder(folder: Path, n_pairs: int = 5) -> Path:
    """In the layout of CROC_syn: pairs of each property, with an image of either side."""
    syn_folder(folder)
    file = folder / "3_extracted_prompts_flux_qwen.jsonl"
    lines = []
    for leaf in PROPERTIES:
        texts = [f"{leaf} {n}" for n in range(n_pairs)]
        record = json.loads(line(f"subject_property|||S|||{leaf}", texts)) | {"skill": "Color"}
        lines.append(json.dumps(record))
        for (side, word), n in product(
            (("prompts", "prompt"), ("contrast_prompts", "contrast")), range(n_pairs)
        ):
            path = (
                folder
                / f"images/flux/qwen/{side}/subject_property_____S_____{leaf}_{word}_{n}_image_0.png"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(n))
    file.write_text("".join(f"{one}\n" for one in lines))
    return folder


def test_an_export_keeps_properties_apart_whatever_they_are_called(tmp_path: Path) -> None:
    folder, out = property_folder(tmp_path / "syn"), tmp_path / "out"
    images = read_review_set(folder, PROPERTIES)
    told = {
        pair.texts[0].rpartition(" ")[0]: astuple(images.properties[pair.category])
        for pair in images.pairs
    }
    assert {leaf: told[leaf] for leaf in PROPERTIES} == {
        leaf: (leaf.replace("_", " "), asks) for leaf, asks in PROPERTIES.items()
    }
    decide_all(review_of(folder), "Ada", lambda _: True)
    assert run("review-export", folder, "--out", out, "--name", "x")[0] == 0
    board = load_registry(cards=[str(out)])["x"]
    assert isinstance(board, CrocHum)
    answers = board.answers(None)
    assert {pair.id: (pair.category, pair.prompt) for pair in answers.prompt_pairs} == {
        pair.id: (pair.category, pair.texts[0]) for pair in images.pairs
    }
    assert len(board.questions(None).images) == images.n_images


def test_decisions_stay_where_a_folder_grows_in_the_middle(tmp_path: Path) -> None:
    folder = property_folder(tmp_path / "syn")
    decide_all(review_of(folder), "Ada", lambda _: True)
    before = review_of(folder).votes()
    file = folder / "3_extracted_prompts_flux_ds.jsonl"
    more = json.dumps(json.loads(line("subject_property|||T|||C", ["new"])) | {"skill": "Color"})
    file.write_text(f"{more}\n{file.read_text()}")
    again = review_of(folder)
    assert next(pair.id for pair in again.images.pairs if pair.category == "c") == "c_1"
    assert (again.votes(), again.n_gone) == (before, 0)


# Decisions.


def test_decisions_survive_a_restart_and_a_line_that_a_crash_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "review.jsonl"
    log = DecisionLog(file)
    log.add(decided("Ada", "a_1", {"x.png": True}, repeat=False))
    with file.open("ab") as out:
        out.write(b'{"rater":"Ada","pair":"a_1","ke')
    again = DecisionLog(file)
    assert again.raters["Ada"].of(repeat=False) == {("a_1", "x.png"): True}
    again.add(decided("Ada", "a_1", {"y.png": False}, repeat=False))
    assert again.unread == [2]
    assert DecisionLog(file).raters["Ada"].of(repeat=False) == {
        ("a_1", "x.png"): True, ("a_1", "y.png"): False,
    }  # fmt: skip


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])


def replace(file: Path) -> None:
    file.rename(file.with_name("old"))
    log = DecisionLog(file)
    for n in range(4):
        log.add(decided("Ada", "a_1", {f"new{n}.png": True}, repeat=False))


@pytest.mark.parametrize("change", [cut, replace, Path.unlink])
def test_a_server_goes_by_the_file_however_it_was_changed(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    log = DecisionLog(tmp_path / "review.jsonl")
    for n in range(3):
        log.add(decided("Ada", "a_1", {f"{n}.png": True}, repeat=False))
    change(log.path)
    for _ in range(2):  # What stays is seen, and then what is added to it.
        log.refresh()
        assert log.raters == DecisionLog(log.path).raters and log.unread == []
        log.add(decided("Ada", "a_1", {"0.png": False}, repeat=False))
    assert log.raters["Ada"].stays["a_1", "0.png", False] is False


def test_two_servers_add_to_one_file_and_see_each_other(tmp_path: Path) -> None:
    logs = [DecisionLog(tmp_path / "review.jsonl") for _ in range(2)]

    def write(log: DecisionLog, rater: str) -> None:
        for n in range(25):
            log.add(decided(rater, "a_1", {f"{n}.png": n % 2 == 0}, repeat=False))

    pairs = zip(logs, ("Ada", "Grace"), strict=True)
    threads = [threading.Thread(target=write, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.refresh()
        assert {rater: len(one.stays) for rater, one in log.raters.items()} == {
            "Ada": 25,
            "Grace": 25,
        }
        assert log.unread == []


def test_each_rater_has_an_own_order_that_stays_pair_by_pair(tmp_path: Path) -> None:
    folder = hum_folder(tmp_path / "hum", {f"counting_{n}": ("a", "b", 2, 3) for n in range(30)})
    review = review_of(folder)
    rows = {rater: review.rows_of(rater) for rater in ("Ada", "Grace")}
    ids = {rater: [row.pair.id for row in of] for rater, of in rows.items()}
    assert ids["Ada"] != ids["Grace"] and sorted(ids["Ada"]) == sorted(ids["Grace"])
    assert [ids["Ada"][n : n + 3].count(ids["Ada"][n]) for n in range(0, 90, 3)] == [3] * 30
    assert review_of(folder).rows_of("Ada") == rows["Ada"], "the same after a restart"
    shown = [image for row in rows["Ada"] for image in row.shown_images]
    assert len(shown) == len(set(shown)) == review.images.n_images


def test_some_rows_come_again_later_and_tell_who_is_consistent(tmp_path: Path) -> None:
    folder = hum_folder(tmp_path / "hum", {f"counting_{n}": ("a", "b", 2, 2) for n in range(100)})
    review = review_of(folder, repeats=0.1)
    rows = review.rows_of("Ada")
    again = [n for n, row in enumerate(rows) if row.repeat]
    assert len(again) == 20 and len(rows) == 220
    for n in again[:5]:
        first = next(m for m, row in enumerate(rows) if row.images == rows[n].images)
        assert NEAREST <= n - first <= FARTHEST + len(again) or n == len(rows) - 1
    said = iter([True, False] * 500)
    for n in again:
        first = next(m for m, row in enumerate(rows) if row.images == rows[n].images)
        review.decide("Ada", first, (True, True))
        review.decide("Ada", n, (next(said), True))
    stand = review.progress("Ada")
    assert (stand.done, stand.rows, stand.repeated, stand.same) == (40, 220, 40, 30)
    assert len(review.votes()) == 40, "what is shown again does not count twice"


def test_undo_takes_decisions_back_one_after_the_other(review: Review) -> None:
    assert review.undo("Ada") is None
    for at in (0, 1):
        keep = tuple(None if i is None else True for i in review.rows_of("Ada")[at].images)
        review.decide("Ada", at, keep)
    assert review.next_place("Ada") == 2
    assert [review.undo("Ada"), review.next_place("Ada"), review.undo("Ada")] == [1, 1, 0]
    assert (review.undo("Ada"), review.votes()) == (None, {})
    assert review.next_place("Ada", after=0) == 1, "a row may be left for later"
    last = len(review.rows_of("Ada")) - 1
    assert review.next_place("Ada", after=last) == 0


def test_a_row_that_is_decided_again_counts_once(review: Review) -> None:
    both = next(n for n, row in enumerate(review.rows_of("Ada")) if None not in row.images)
    for keep in ((True, True), (False, True)):
        review.decide("Ada", both, keep)
    assert sorted(said["Ada"] for said in review.votes().values()) == [False, True]


def test_decisions_about_images_that_went_do_not_count(folder: Path) -> None:
    decide_all(review_of(folder), "Ada", lambda _: True)
    (folder / place("counting_1", "prompt", 1)).unlink()
    review = review_of(folder)
    assert (len(review.votes()), review.n_gone) == (9, 1)


@pytest.mark.parametrize("what", ["image", "text"])
def test_what_was_replaced_since_is_undecided_and_asked_again(folder: Path, what: str) -> None:
    running = review_of(folder)
    decide_all(running, "Ada", lambda _: True)
    image = folder / place("shapes_1", "prompt", 1)
    if what == "image":
        image.write_bytes(png(77))
        reviews = [running, review_of(folder)]
    else:
        (folder / TABLE).write_text((folder / TABLE).read_text().replace("round", "oval"))
        reviews = [review_of(folder)]
    n = 1 if what == "image" else 3
    for review in reviews:
        assert (len(review.votes()), review.n_gone) == (10 - n, n)
        kept = kept_images(review.images, review.votes(), "majority")
        assert kept.total("undecided") == n
        assert review.rows_of("Ada")[review.next_place("Ada") or 0].pair.id == "shapes_1"
        assert review.progress("Ada").images == 10 - n
    decide_all(reviews[-1], "Ada", lambda _: False)
    votes = reviews[-1].votes()
    assert (len(votes), reviews[-1].n_gone) == (10, 0)
    assert votes["shapes_1", place("shapes_1", "prompt", 1)] == {"Ada": False}


def test_decisions_of_a_version_without_hashes_count_and_are_told(review: Review) -> None:
    image = place("counting_1", "prompt", 1)
    review.log.add(decided("Ada", "counting_1", {image: True}, repeat=False))
    assert review.votes() == {("counting_1", image): {"Ada": True}}
    assert (review.n_gone, review.n_unhashed) == (0, 1)
    decide_all(review, "Ada", lambda _: True)
    again = [n for n, row in enumerate(review.rows_of("Ada")) if image in str(row.images)]
    review.decide("Ada", again[0], (True, True))
    assert len(review.votes()) == 10 and review.n_unhashed == 0


# Agreement.


def test_alpha_of_decisions_is_that_of_the_definition_with_an_interval_over_pairs() -> None:
    rng = np.random.default_rng(2)
    table = rng.integers(0, 2, (120, 3)).astype(float)
    table[rng.random(table.shape) < 0.4] = np.nan
    pairs = [f"p{n // 4}" for n in range(120)]
    found = alpha_of(table, pairs, 300)
    assert found.value == pytest.approx(krippendorff_alpha(table, "nominal"))
    assert found.low < found.value < found.high
    assert found.units == (np.isfinite(table).sum(axis=1) >= 2).sum() and found.clusters == 30
    one = alpha_of(table[:, :1], pairs, 300)
    assert (one.units, one.clusters) == (0, 0) and math.isnan(one.value) and math.isnan(one.low)


def test_agreement_is_told_by_property_and_for_each_rater() -> None:
    said: list[tuple[str, str, dict[str, bool]]] = [
        ("red_1", "a", {"Ada": True, "Grace": True, "Joan": False}),
        ("red_1", "b", {"Ada": False, "Grace": False, "Joan": False}),
        ("blue_1", "c", {"Ada": True, "Grace": False}),
        ("blue_1", "d", {"Joan": True}),
    ]
    votes = {(pair, path): of for pair, path, of in said}
    found = agreement_of(votes, {"red_1": "red", "blue_1": "blue"}, 50)
    assert {key: alpha.units for key, alpha in found.by_property.items()} == {"red": 2, "blue": 1}
    ada, grace, joan = found.raters
    assert (ada.images, ada.kept, ada.compared, ada.with_majority) == (3, 2, 2, 1)
    assert (grace.compared, grace.with_majority) == (2, 1), "the others are tied on a"
    assert (joan.images, joan.compared, joan.with_majority) == (3, 2, 1)
    assert joan.alpha_without == pytest.approx(
        krippendorff_alpha([[1, 1], [0, 0], [1, 0]], "nominal")
    )


# Export.


@pytest.mark.parametrize(
    ("said", "majority", "of_all", "of_any"),
    [
        ({}, "undecided", "undecided", "undecided"),
        ({"a": True}, "kept", "kept", "kept"),
        ({"a": False}, "dropped", "dropped", "dropped"),
        ({"a": True, "b": False}, "tied", "dropped", "kept"),
        ({"a": True, "b": False, "c": True}, "kept", "dropped", "kept"),
        ({"a": True, "b": False, "c": False}, "dropped", "dropped", "kept"),
    ],
)
def test_rules_for_several_raters(
    said: Mapping[str, bool], majority: str, of_all: str, of_any: str
) -> None:
    rules: tuple[Rule, ...] = ("majority", "all", "any")
    assert [fate_of(said, rule) for rule in rules] == [majority, of_all, of_any]


def run(*words: object) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(command_line(), ["croc", *map(str, words)])
    return result.exit_code, result.output, result.exception


def test_reviewed_images_become_a_board_in_the_released_layout(
    tmp_path: Path, folder: Path
) -> None:
    review = review_of(folder)
    decide_all(review, "Ada", lambda path: "image1" in path and "shapes" not in path)
    decide_all(review, "Grace", lambda path: "image3" not in path)
    decide_all(review, "Joan", lambda path: path != place("negation_1", "alt_contrast", 1))
    out = tmp_path / "boards" / "my_croc"
    code, printed, _ = run("review-export", folder, "--out", out, "--title", "Mine", "--json")
    assert code == 0, printed
    report = json.loads(printed)
    assert report["images"] == {"kept": 9, "dropped": 1, "tied": 0, "undecided": 0}
    assert report["properties"]["counting"]["contrast"]["dropped"] == 1
    assert report["pairs_without_kept"] == {"prompt": [], "contrast": []}
    assert report == json.loads((out / "report.json").read_text())
    assert read_review_set(out).n_images == 9, "it can be reviewed again"
    board = load_registry(cards=[str(out)])["my_croc"]
    assert isinstance(board, CrocHum) and board.card.title == "Mine"
    answers = board.answers(None)
    kept = {stem for pair in answers.prompt_pairs for stem in pair.images}
    assert Path(place("counting_1", "contrast", 3)).stem not in kept and len(kept) == 9
    assert answers.prompt_pairs[2].contrast_images == ("negation_1___alt_contrast___toy___image1",)
    asked = board.questions(None)
    assert (
        asked.images[asked.pairs[0].image_id]()
        == (folder / place("counting_1", "prompt", 1)).read_bytes()
    )
    scores = [float("prompt" in pair) == float(pair.endswith("orig")) for pair in answers.pair_ids]
    table = ScoreTable(pd.DataFrame({"right": scores}, index=list(answers.pair_ids), dtype=float))
    rows = board.evaluate(table, answers, 20).rows
    head = [row for row in rows if board.card.headline.matches(row) and row.skill is None]
    assert [row.value for row in head] == [1.0]


def test_the_released_table_of_an_export_is_read_by_its_authors_path_rule(tmp_path: Path) -> None:
    folder, out = hum_folder(tmp_path / "hum"), tmp_path / "out"
    decide_all(review_of(folder), "Ada", lambda _: True)
    assert run("review-export", folder, "--out", out, "--name", "x")[0] == 0
    table = pd.read_csv(out / TABLE, sep="\t")
    for cell in table[["prompt_paths", "contrast_paths", "alt_contrast_paths"]].to_numpy().ravel():
        for listed in json.loads(cell.replace("'", '"')):
            joined = str(out / listed).replace("images/", "")
            assert Path(joined).is_file()


def test_an_export_tells_which_decisions_do_not_count(tmp_path: Path, folder: Path) -> None:
    review = review_of(folder)
    decide_all(review, "Ada", lambda _: True)
    (folder / place("counting_1", "prompt", 1)).unlink()
    with review.log.path.open("a") as file:
        file.write("damaged\n\n{}\n")
    words = ["review-export", folder, "--name", "x", "--out"]
    report = json.loads(run(*words, tmp_path / "a", "--json")[1])
    assert (report["decisions_unread"], report["decided_images_gone"]) == (2, 1)
    assert report == json.loads((tmp_path / "a" / "report.json").read_text())
    printed = run(*words, tmp_path / "b")[1]
    assert "do not count: 1 images" in printed and "do not count: 2 lines" in printed


def test_prompts_without_an_image_are_told_and_pairs_without_any_left_out(
    tmp_path: Path, folder: Path
) -> None:
    decide_all(review_of(folder), "Ada", lambda path: path.startswith("counting/prompt"))
    code, printed, _ = run(
        "review-export", folder, "--out", tmp_path / "a", "--name", "a", "--json"
    )
    report = json.loads(printed)
    assert code == 0 and report["pairs_left_out"] == ["shapes_1", "negation_1"]
    assert report["pairs_without_kept"] == {
        "prompt": ["shapes_1", "negation_1"], "contrast": list(PAIRS),
    }  # fmt: skip
    assert report["agreement"]["overall"]["value"] is None
    answers = load_registry(cards=[str(tmp_path / "a")])["a"].answers(None)
    assert answers.clusters == ("counting_1",)
    code, printed, _ = run("review-export", folder, "--out", tmp_path / "b", "--name", "b")
    assert code == 0
    for word in ("Counting", "shapes_1, negation_1", "α", "Ada: 10 decided, 2 kept"):
        assert word in printed, printed


def test_images_of_croc_syn_get_names_of_croc_hum(tmp_path: Path) -> None:
    folder, out = syn_folder(tmp_path / "syn"), tmp_path / "out"
    decide_all(review_of(folder), "Ada", lambda path: not path.endswith("_image_0.png"))
    assert run("review-export", folder, "--out", out, "--name", "x")[0] == 0
    answers = load_registry(cards=[str(out)])["x"].answers(None)
    assert isinstance(answers.counts(), dict)
    assert answers.clusters == ("red_1", "entity_variation_1")
    assert answers.pair_ids[0] == "red_1___prompt___flux___image2|orig"


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--out", "there"], "folder_exists"), (["--name", "Ä b", "--out", "x"], "bad_name")],
)
def test_an_export_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    decide_all(review_of(hum_folder(tmp_path / "hum")), "Ada", lambda _: True)
    assert getattr(run("review-export", "hum", *words)[2], "code", "") == code


def test_a_review_in_which_nothing_stays_is_no_benchmark(tmp_path: Path, folder: Path) -> None:
    decide_all(review_of(folder), "Ada", lambda _: False)
    error = run("review-export", folder, "--out", tmp_path / "out", "--name", "x")[2]
    assert getattr(error, "code", "") == "nothing_kept" and not (tmp_path / "out").exists()
