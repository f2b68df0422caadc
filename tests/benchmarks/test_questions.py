"""Exported questions: opaque ids that tell nothing, a key that turns them back, and the command."""

from __future__ import annotations

import json
import random
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.__main__ import main
from benchmarks.questions import Key, QuestionFolder, export_questions, key_path
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark, Element, Pair, Questions, ScoreTable
from tests.kit.refusals import refused
from tests.kit.toy import PAIRS, Toy

OPAQUE = re.compile(r"[pite]\d{6}-[0-9a-f]{8}")
ALLOWED = {
    "pairs.parquet": ["pair_id", "image_id", "text_id"],
    "texts.parquet": ["text_id", "prompt"],
    "images.parquet": ["image_id", "file", "sha256", "n_bytes"],
    "elements.parquet": ["element_id", "text_id", "element"],
    "lists.parquet": ["list", "pair_id"],
}
REGISTRY = load_registry()


class Parted(Toy):
    """Two texts that name an element alike, as `1` in the first and `1` in the second."""

    def questions(self, data: Path | None) -> Questions:
        toy = super().questions(data)
        one = (Element("1", "pixel"), Element("0", "grey"))
        return Questions(
            toy.images,
            {"text": "a grey pixel", "other": "a pixel"},
            (*toy.pairs[:2], Pair("c", "image c", "other")),
            {"text": one, "other": (Element("1", "pixel"),)},
            (("b", "a"),),
        )


@dataclass(frozen=True)
class Exported:
    benchmark: Benchmark
    out: Path

    @property
    def folder(self) -> Path:
        return self.out / self.benchmark.name

    @property
    def key(self) -> Key:
        return Key.read(key_path(self.out, self.benchmark.name))

    @property
    def questions(self) -> Questions:
        return QuestionFolder(self.out).questions(self.benchmark)


def of_revision(revision: str) -> Benchmark:
    other = Parted()
    other.card = other.card.model_copy(update={"revision": revision})
    return other


EXPORTED = {
    "toy": Toy(),
    "parted": Parted(),
    **{name: REGISTRY[name] for name in ("demo_croc", "demo_ts2", "demo_evalmuse")},
}


@pytest.fixture(scope="module", params=EXPORTED)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    benchmark, out = EXPORTED[request.param], tmp_path_factory.mktemp("exported")
    export_questions(benchmark, None, out)
    return Exported(benchmark, out)


@pytest.fixture
def toy(tmp_path: Path) -> Exported:
    export_questions(Parted(), None, tmp_path / "out")
    return Exported(Parted(), tmp_path / "out")


# What is exported
@pytest.mark.first_quick
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


def test_a_folder_holds_what_a_scorer_may_see_by_opaque_ids(exported: Exported) -> None:
    questions, found = exported.benchmark.questions(None), exported.questions
    tables = {path.name: pq.read_table(path) for path in exported.folder.glob("*.parquet")}
    assert {n: t.column_names for n, t in tables.items()} == {n: ALLOWED[n] for n in tables}
    assert ("elements.parquet" in tables) is bool(questions.elements)
    others = {path.name for path in exported.folder.iterdir()} - set(tables)
    assert others == {"benchmark.json", "images"}
    about = json.loads((exported.folder / "benchmark.json").read_text())
    assert set(about) == {"format", "name", "revision", "tag", "counts", "tables"}
    ids = {p.pair_id for p in questions.pairs} | set(questions.images) | set(questions.texts)
    seen = {
        value
        for table in tables.values()
        for name, values in table.to_pydict().items()
        if name not in {"prompt", "element", "n_bytes"}
        for value in values
    }
    assert not ids & (seen | {path.name for path in exported.folder.rglob("*")})
    orders = [[p.pair_id for p in found.pairs], list(found.images), list(found.texts)]
    assert orders == [sorted(order) for order in orders]
    named = [n for order in orders for n in order]
    named += [e.element_id for many in found.elements.values() for e in many]
    assert all(OPAQUE.fullmatch(name) for name in named)
    assert len(set(named)) == len(named)
    files = tables["images.parquet"]["file"].to_pylist()
    assert files == [f"{n:06d}" for n in range(1, len(found.images) + 1)]


def test_the_numbers_are_a_shuffle_that_is_drawn_anew_for_each_key() -> None:
    benchmark = load_registry()["demo_ts2"]
    questions = benchmark.questions(None)
    keys = [Key.drawn(benchmark, questions, random.Random(seed)) for seed in range(2)]
    orders = [
        [names[opaque] for opaque in sorted(names)]
        for key in keys
        for names in (key.pairs, key.images)
    ]
    orders.append([pair.pair_id for pair in questions.pairs])
    assert len({tuple(order) for order in orders}) == 5
    assert all(sorted(order) == sorted(orders[-1]) for order in orders)


# What is read again
def test_a_folder_has_the_revision_it_was_made_of_and_no_other(toy: Exported) -> None:
    folder = QuestionFolder(toy.out)
    assert folder.has(Parted())
    for other in (of_revision("2"), REGISTRY["demo_ts2"]):
        assert not folder.has(other)
        with refused("questions_missing"):
            folder.questions(other)


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
        with refused("questions_damaged", match=r"images/00000[23] is not as it was"):
            read()


@pytest.mark.parametrize("name", ["images/000001", "images", "pairs.parquet", "benchmark.json"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_what_is_missing_or_cut_is_found_at_once(toy: Exported, name: str, how: str) -> None:
    place = toy.folder / name
    if place.is_dir():
        place.rename(toy.out / "elsewhere")
    elif how == "gone":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes()[:-3])
    gone = (name, how) == ("benchmark.json", "gone")
    with refused("questions_missing" if gone else "questions_damaged", str(toy.folder)):
        _ = toy.questions


def test_a_table_that_was_changed_is_found(toy: Exported) -> None:
    path = toy.folder / "texts.parquet"
    pd.read_parquet(path).assign(prompt="another").to_parquet(path, index=False)
    with refused("questions_damaged", match="SHA-256"):
        _ = toy.questions


# What is exported again
def test_exported_again_the_ids_stay_and_damage_is_mended(toy: Exported) -> None:
    before, path = toy.key, key_path(toy.out, "toy")
    assert path == toy.out / "toy.key.parquet"  # outside, and for its owner alone
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (toy.folder / "images/000001").unlink()
    export_questions(Parted(), None, toy.out)
    assert toy.key == before
    assert len([read() for read in toy.questions.images.values()]) == 3
    assert sorted(p.name for p in toy.out.iterdir()) == ["toy", "toy.key.parquet"]


def test_another_revision_or_other_questions_replace_it_only_when_told(toy: Exported) -> None:
    before = toy.key
    with refused("other_revision"):
        export_questions(of_revision("2"), None, toy.out)
    assert (toy.key, QuestionFolder(toy.out).has(Parted())) == (before, True)
    export_questions(of_revision("2"), None, toy.out, force=True)
    assert QuestionFolder(toy.out).has(of_revision("2"))
    assert (toy.key.revision, toy.key.tag == before.tag) == ("2", False)
    export_questions(Parted(), None, toy.out, force=True)
    with refused("other_questions"):
        export_questions(Toy(), None, toy.out)
    key_path(toy.out, "toy").write_bytes(b"spoilt")
    with refused("key_unreadable"):
        export_questions(Parted(), None, toy.out)
    export_questions(Toy(), None, toy.out, force=True)
    assert Exported(Toy(), toy.out).questions.elements == {}


def test_a_folder_of_anything_else_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/answers.csv").write_text("mine")
    with refused("not_a_question_folder"):
        export_questions(Toy(), None, tmp_path, force=True)
    assert [p.name for p in tmp_path.rglob("*")] == ["toy", "answers.csv"]


def test_an_export_that_fails_leaves_what_was_there(toy: Exported) -> None:
    before = toy.key

    class Failing(Parted):
        def questions(self, data: Path | None) -> Questions:
            whole = super().questions(data)
            return replace(whole, images={**whole.images, "image b": Path("nowhere").read_bytes})

    for force in (False, True):
        with refused("images_missing"):
            export_questions(Failing(), None, toy.out, force=force)
    assert (toy.key, len(toy.questions.pairs)) == (before, 3)
    assert sorted(p.name for p in toy.out.iterdir()) == ["toy", "toy.key.parquet"]


# What the key turns back
def test_a_whole_table_comes_back_with_its_elements(toy: Exported) -> None:
    found, key = toy.questions, toy.key
    texts = {p.pair_id: p.text_id for p in found.pairs}
    rows = [
        (p, e.element_id, float(len(e.text))) for p, t in texts.items() for e in found.elements[t]
    ]
    index = pd.Index(list(texts), name="pair_id")
    table = ScoreTable(
        pd.DataFrame({"m": [float(ord(key.pairs[p])) for p in texts]}, index=index),
        elements={"m": pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])},
        directions={"m": -1},
        margins={
            "m": pd.DataFrame({"pair_id": index, "other_id": index[::-1], "margin": range(3)})
        },
    )
    restored = key.restore_table(table)
    turned = restored.margins["m"]
    assert [turned[name].tolist() for name in ("pair_id", "other_id", "margin")] == [
        [key.pairs[p] for p in index], [key.pairs[p] for p in index[::-1]], [0, 1, 2]
    ]  # fmt: skip
    (compared,) = found.lists or ()
    assert {key.original(p) for p in compared} == {"a", "b"}
    assert key.original(" > ".join(compared)) in ("a > b", "b > a")
    some = key.restore_table(ScoreTable(table.overall.iloc[1:]))
    assert some.overall.to_dict() == restored.overall.drop(key.pairs[next(iter(texts))]).to_dict()
    assert restored.overall["m"].to_dict() == {"a": 97.0, "b": 98.0, "c": 99.0}
    assert (tuple(restored.overall.index), restored.overall.index.name) == (PAIRS, "pair_id")
    assert restored.directions == {"m": -1}
    assert restored.elements["m"].values.tolist() == [
        ["a", "1", 5.0], ["a", "0", 4.0], ["b", "1", 5.0], ["b", "0", 4.0], ["c", "1", 5.0],
    ]  # fmt: skip


def test_scores_of_another_export_are_refused_by_the_key(toy: Exported, tmp_path: Path) -> None:
    export_questions(Parted(), None, tmp_path / "again")
    foreign = list(Key.read(key_path(tmp_path / "again", "toy")).pairs)
    table = ScoreTable(pd.DataFrame({"m": 1.0}, index=pd.Index(foreign, name="pair_id")))
    with refused("key_mismatch"):
        toy.key.restore_table(table)
    with refused("key_mismatch"):
        toy.key.original("a")


def test_what_is_no_key_or_cannot_have_one_says_so(tmp_path: Path) -> None:
    for content in (None, b"", b"PAR1 no table PAR1"):
        if content is not None:
            (tmp_path / "k").write_bytes(content)
        with refused("key_unreadable"):
            Key.read(tmp_path / "k")
    questions = Parted().questions(None)
    twice = replace(questions, pairs=(*questions.pairs, questions.pairs[0]))
    with refused("questions_inconsistent"):
        Key.drawn(Parted(), twice, random.Random(0))


# The command
@pytest.mark.slow
def test_the_command_exports_and_says_what_goes_where(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks", "questions", "demo_ts2", "--out", str(tmp_path)]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["name"], told["counts"]["pairs"]) == ("demo_ts2", 295)
    assert "295 of 295" in done.stderr
    key = Key.read(Path(told["key"]))
    assert (key.tag, len(key.pairs)) == (told["tag"], 295)
    assert len(QuestionFolder(tmp_path).questions(REGISTRY["demo_ts2"]).pairs) == 295


def test_the_command_tells_people_what_stays_with_the_judge_and_why_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(out: str) -> tuple[int, str]:
        words = ["benchmarks", "questions", "toy", "--out", str(tmp_path / out)]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            sys.exit(main())
        shown = capfd.readouterr()
        assert shown.out == ""
        return int(end.value.code or 0), shown.err

    monkeypatch.setattr("benchmarks.commands.common.load_registry", lambda: {"toy": Toy()})
    code, said = run("new/out")
    assert code == 0 and "3 pairs" in said and "toy.key.parquet" in said
    (tmp_path / "new/out/toy/benchmark.json").unlink()
    (tmp_path / "file").write_text("")
    for out, wrong in (("new/out", "not_a_question_folder"), ("file/out", "cannot_write")):
        code, said = run(out)
        assert (code, f"error [{wrong}]" in said) == (1, True)
