"""A scoring host gets what a scorer may see, under names that tell nothing, and can trust it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.question_folder import QuestionFolder, export_questions, key_path
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark, Element, Pair, Questions
from tests.benchmarks.exporting import Exported, Parted, exported_to, of_revision
from tests.benchmarks.toy import Toy

DEMOS = ("demo_croc", "demo_ts2", "demo_evalmuse")
OPAQUE = re.compile(r"[pite]\d{6}-[0-9a-f]{8}")


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {
    "toy": Toy,
    "parted": Parted,
    **{name: partial(lambda name: load_registry()[name], name) for name in DEMOS},
}


@pytest.fixture(scope="module", params=BENCHMARKS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    benchmark, out = BENCHMARKS[request.param](), tmp_path_factory.mktemp("exported")
    export_questions(benchmark, None, out)
    return Exported(benchmark, out)


@pytest.fixture
def toy(tmp_path: Path) -> Exported:
    return exported_to(tmp_path / "out")


# what is exported -------------------------------------------------------------------------------


def test_with_its_key_a_folder_gives_back_the_questions(exported: Exported) -> None:
    key, found = exported.key, exported.questions
    wanted = exported.benchmark.questions(None)
    assert {key.images[i]: read() for i, read in found.images.items()} == {
        name: read() for name, read in wanted.images.items()
    }
    assert {key.texts[t]: prompt for t, prompt in found.texts.items()} == wanted.texts
    pairs = {
        p.pair_id: Pair(key.pairs[p.pair_id], key.images[p.image_id], key.texts[p.text_id])
        for p in found.pairs
    }
    assert tuple(pairs[opaque] for opaque in key.pairs) == wanted.pairs
    assert {
        key.texts[text]: tuple(Element(key.original(e.element_id), e.text) for e in many)
        for text, many in found.elements.items()
    } == wanted.elements


def test_a_folder_holds_what_a_scorer_may_see_and_no_more(exported: Exported) -> None:
    allowed = {
        "pairs.parquet": ["pair_id", "image_id", "text_id"],
        "texts.parquet": ["text_id", "prompt"],
        "images.parquet": ["image_id", "file", "sha256", "n_bytes"],
        "elements.parquet": ["element_id", "text_id", "element"],
    }
    tables = {path.name: pq.read_table(path) for path in exported.folder.glob("*.parquet")}
    assert {name: table.column_names for name, table in tables.items()} == {
        name: allowed[name] for name in tables
    }
    assert ("elements.parquet" in tables) is bool(exported.benchmark.questions(None).elements)
    others = {path.name for path in exported.folder.iterdir()} - set(tables)
    assert others == {"benchmark.json", "images"}
    about = json.loads((exported.folder / "benchmark.json").read_text())
    assert set(about) == {"format", "name", "revision", "tag", "counts", "tables"}


def test_no_id_of_the_benchmark_is_in_the_folder(exported: Exported) -> None:
    questions = exported.benchmark.questions(None)
    ids = {p.pair_id for p in questions.pairs} | set(questions.images) | set(questions.texts)
    seen = {
        value
        for path in exported.folder.glob("*.parquet")
        for name, values in pq.read_table(path).to_pydict().items()
        if name not in {"prompt", "element", "n_bytes"}
        for value in values
    }
    seen |= {path.name for path in exported.folder.rglob("*")}
    assert not ids & seen
    found = exported.questions
    named = [p.pair_id for p in found.pairs] + [*found.images, *found.texts]
    named += [e.element_id for many in found.elements.values() for e in many]
    assert all(OPAQUE.fullmatch(name) for name in named)
    assert len(set(named)) == len(named)


def test_tables_and_files_lie_in_the_order_of_the_numbers(exported: Exported) -> None:
    found = exported.questions
    pairs = [pair.pair_id for pair in found.pairs]
    for order in (pairs, list(found.images), list(found.texts)):
        assert order == sorted(order)
    files = pq.read_table(exported.folder / "images.parquet")["file"].to_pylist()
    assert files == [f"{n:06d}" for n in range(1, len(found.images) + 1)]


# what is wrong with a folder --------------------------------------------------------------------


def test_a_folder_has_the_revision_it_was_made_of_and_no_other(toy: Exported) -> None:
    folder = QuestionFolder(toy.out)
    assert folder.has(Parted())
    assert not folder.has(of_revision("2"))
    assert not folder.has(load_registry()["demo_ts2"])
    with pytest.raises(PlatformError, match="it is of toy 1, not 2") as raised:
        folder.questions(of_revision("2"))
    assert raised.value.code == "questions_missing"
    with pytest.raises(PlatformError, match=r"no benchmark\.json"):
        folder.questions(load_registry()["demo_ts2"])


def test_an_image_that_is_not_as_exported_is_found_when_it_is_read(toy: Exported) -> None:
    questions = toy.questions
    place = toy.folder / "images/000002"
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)
    intact, spoilt, gone = toy.questions.images.values()
    (toy.folder / "images/000003").unlink()
    assert intact() == questions.images[next(iter(questions.images))]()
    for read in (spoilt, gone):
        with pytest.raises(PlatformError, match=r"images/00000[23] is not as it was") as raised:
            read()
        assert raised.value.code == "questions_damaged"


@pytest.mark.parametrize("name", ["images/000001", "images", "pairs.parquet", "benchmark.json"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_what_is_missing_or_cut_is_found_before_anything_is_scored(
    toy: Exported, name: str, how: str
) -> None:
    place = toy.folder / name
    if place.is_dir():
        place.rename(toy.out / "elsewhere")
    elif how == "gone":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-3])
    with pytest.raises(PlatformError) as raised:
        _ = toy.questions
    assert raised.value.code in {"questions_damaged", "questions_missing"}
    assert str(toy.folder) in raised.value.message


def test_a_table_that_was_changed_is_found(toy: Exported) -> None:
    path = toy.folder / "texts.parquet"
    pd.read_parquet(path).assign(prompt="another").to_parquet(path, index=False)
    with pytest.raises(PlatformError, match="SHA-256"):
        _ = toy.questions


# exporting again --------------------------------------------------------------------------------


def test_exported_again_the_ids_stay_and_damage_is_mended(toy: Exported) -> None:
    before = toy.key
    (toy.folder / "images/000001").unlink()
    export_questions(Parted(), None, toy.out)
    assert toy.key == before
    assert len([read() for read in toy.questions.images.values()]) == 3
    assert sorted(p.name for p in toy.out.iterdir()) == ["toy", "toy.key.parquet"]


def test_another_revision_is_replaced_only_when_told(toy: Exported) -> None:
    before = toy.key
    with pytest.raises(SubmitterError, match="holds toy 1, not 2") as raised:
        export_questions(of_revision("2"), None, toy.out)
    assert raised.value.code == "other_revision"
    assert (toy.key, QuestionFolder(toy.out).has(Parted())) == (before, True)
    export_questions(of_revision("2"), None, toy.out, force=True)
    assert QuestionFolder(toy.out).has(of_revision("2"))
    assert (toy.key.revision, toy.key.tag == before.tag) == ("2", False)


def test_a_key_of_other_questions_is_replaced_only_when_told(toy: Exported) -> None:
    with pytest.raises(SubmitterError) as raised:
        export_questions(Toy(), None, toy.out)
    assert raised.value.code == "other_questions"
    key_path(toy.out, "toy").write_bytes(b"spoilt")
    with pytest.raises(SubmitterError) as raised:
        export_questions(Parted(), None, toy.out)
    assert raised.value.code == "key_unreadable"
    export_questions(Toy(), None, toy.out, force=True)
    assert Exported(Toy(), toy.out).questions.elements == {}


def test_a_folder_of_anything_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/answers.csv").write_text("mine")
    with pytest.raises(SubmitterError) as raised:
        export_questions(Toy(), None, tmp_path, force=True)
    assert raised.value.code == "not_a_question_folder"
    assert [p.name for p in tmp_path.rglob("*")] == ["toy", "answers.csv"]


def test_an_export_that_fails_leaves_what_was_there(
    toy: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = toy.key

    class Failing(Parted):
        def questions(self, data: Path | None) -> Questions:
            whole = super().questions(data)
            return replace(whole, images={**whole.images, "image b": Path("nowhere").read_bytes})

    for force in (False, True):
        with pytest.raises(SubmitterError, match="'image b'") as raised:
            export_questions(Failing(), None, toy.out, force=force)
        assert raised.value.code == "images_missing"
    assert toy.key == before
    assert len(toy.questions.pairs) == 3
    assert sorted(p.name for p in toy.out.iterdir()) == ["toy", "toy.key.parquet"]
