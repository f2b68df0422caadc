"""`bench new`: a table becomes a card that can be checked, or that says which line to fill."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.__main__ import main
from benchmarks.errors import SubmitterError
from benchmarks.families import load_card
from benchmarks.families.untrusted import FILL_IN
from benchmarks.proposal import propose
from benchmarks.schema import ScoreTable
from benchmarks.sources.remote import Hub
from benchmarks.table_sample import sample_file, sample_hub
from tests.kit.checks import Command
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.refusals import refused

VOTES = pd.DataFrame({
    "id": ["1", "2", "3"], "prompt": ["a cat", "a dog", "a cow"],
    "image_a": ["1a.png", "2a.png", "3a.png"], "image_b": ["1b.png", "2b.png", "3b.png"],
    "better": ["left", "right", "tie"],
})  # fmt: skip
RATED = pd.DataFrame({
    "file": ["a.png", "b.png", "c.png", "d.png"], "prompt": ["a cat", "a cat", "a dog", "a dog"],
    "model": ["x", "y", "x", "y"], "mos_align": [1.0, 2.5, 4.0, 3.0], "sd_align": [0.1] * 4,
})  # fmt: skip
LONG = pd.DataFrame({
    "image": ["a.png", "a.png", "b.png", "b.png"], "prompt": ["a cat"] * 2 + ["a dog"] * 2,
    "rater": ["r", "s", "r", "s"], "alignment_score": [1, 2, 5, 4],
})  # fmt: skip
PARTS = pd.DataFrame({
    "image": ["a.png", "a.png", "b.png", "b.png"], "prompt": ["a cat"] * 2 + ["a dog"] * 2,
    "question": ["is there a cat?", "is it red?", "is there a dog?", "is it blue?"],
    "answer": ["yes", "no", "yes", "yes"], "category": ["object", "colour"] * 2,
})  # fmt: skip
RANKED = pd.DataFrame({
    "prompt": ["a cat", "a dog"], "images": [["1", "2", "3"], ["4", "5"]],
    "rank": [[1, 2, 3], [2, 1]],
})  # fmt: skip
COUNTED = VOTES.drop(columns="better").assign(votes_a=[1, 2, 3], votes_b=[3, 1, 0])
WEIGHED = VOTES.drop(columns="better").assign(weighted_a=[0.1, 2, 3], weighted_b=[3, 1, 0.5])
GROUPS = pd.DataFrame({
    "id": ["0", "1"],
    "caption_0": ["a cat on a dog", "red cube"], "caption_1": ["a dog on a cat", "blue cube"],
    "image_0": ["0a.png", "1a.png"], "image_1": ["0b.png", "1b.png"],
})  # fmt: skip
MODELS = pd.DataFrame({
    "model": ["one", "two v2.1", "three"], "elo": [1012.5, 987.0, 1100.25],
    "release_date": ["2023-07-26", "2024-08-01", "2025-02-11"],
})  # fmt: skip
RATES = pd.DataFrame({"name": ["one", "two", "three"], "human_alignment": [0.5, 0.25, 0.75]})
LISTED = RATED[["file", "prompt"]].assign(quality=pd.Series([[1, 2], [3, 4], [5, 5], [2, 1]]))


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(main, monkeypatch, capsys)


TABLES: dict[str, tuple[pd.DataFrame, str, dict[str, Any]]] = {
    "votes": (VOTES, "preference", {"label": "better", "values": {"a": "left", "b": "right", "tie": "tie"}}),
    "counted votes": (COUNTED, "preference", {"votes": ["votes_a", "votes_b"]}),
    "weights": (WEIGHED, "preference", {"weights": ["weighted_a", "weighted_b"]}),
    "ranks": (RANKED, "preference", {"ranks": "rank", "best": "lowest"}),
    "mean ratings": (RATED, "rating", {"mean": "mos_align", "scale": [1, 5], "sd": "sd_align"}),
    "single ratings": (LONG, "rating", {"rating": "alignment_score", "scale": [1, 5], "rater": "rater"}),
    "groups": (GROUPS, "group", {"rule": "winoground"}),
    "parts": (
        PARTS, "element",
        {"label": "answer", "element": "question", "element_text": "question", "threshold": "held_out"},
    ),
    "models": (
        MODELS, "system",
        {"human": "people", "released": dict(zip(MODELS["model"], MODELS["release_date"], strict=True))},
    ),
    "rates of models": (RATES, "system", {"human": "people", "scale": [0, 1]}),
}  # fmt: skip


FORMS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, marks=() if form == "csv" or case == "ranks" else pytest.mark.slow)
        for case in TABLES
        for form in FORMS
    ],
)
def test_a_table_becomes_a_card_whose_data_can_be_read(
    tmp_path: Path, new: Command, case: str, form: str
) -> None:
    frame, family, section = TABLES[case]
    table = written(frame, tmp_path / f"table.{form}")
    assert new("new", table, "--out", tmp_path / "mine", "--json") == 0, new.err
    found = json.loads(new.out)
    assert (found["family"], found["problems"]) == (family, [])
    card = tomllib.loads((tmp_path / "mine" / "card.toml").read_text())
    own = next(iter(card["gold"].values())) if family == "rating" else card[family]
    assert own == section
    assert new("check", tmp_path / "mine") == 0, new.err
    benchmark = load_card(tmp_path / "mine" / "card.toml")
    assert benchmark.name == "mine" and len(benchmark.answers(None).pair_ids) >= 2


def written(frame: pd.DataFrame, path: Path) -> Path:
    form = path.suffix
    if form in (".csv", ".tsv"):
        text = frame.map(lambda cell: json.dumps(cell) if isinstance(cell, list) else cell)
        text.to_csv(path, index=False, sep="\t" if form == ".tsv" else ",")
    elif form == ".xlsx":
        path.write_bytes(workbook(frame))
    elif form == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=form == ".jsonl")
    return path


def workbook(frame: pd.DataFrame) -> bytes:
    """The smallest workbook with these cells, all text but for numbers."""

    def cell(value: object) -> str:
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        text = json.dumps(value) if isinstance(value, list) else str(value)
        return f'<c t="inlineStr"><is><t>{text}</t></is></c>'

    rows = [list(frame), *frame.to_numpy(object).tolist()]
    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    space = "http://schemas.openxmlformats.org"
    kind = f"{space}/officeDocument/2006/relationships"
    book = f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{kind}"><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="r1" Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="r1" Type="{kind}/worksheet" Target="worksheets/s.xml"/></Relationships>',
        "xl/worksheets/s.xml": f'<worksheet xmlns="{space}/spreadsheetml/2006/main"><sheetData>{body}</sheetData></worksheet>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, f'<?xml version="1.0"?>{content}')
    return buffer.getvalue()


UNKNOWN: dict[str, tuple[pd.DataFrame, list[str]]] = {
    "numbers": (pd.DataFrame({"x": ["1", "2"], "y": ["3", "4"]}), ["kind", "items.prompt"]),
    "rating of something": (RATED.rename(columns={"mos_align": "score"}).drop(columns="sd_align"), ["kind"]),
    "far numbers": (RATED.assign(mos_align=[1, 2, 3, 900]), ["gold.mos_align.scale.0", "gold.mos_align.scale.1"]),
    "no ratings": (RATED[["file", "prompt"]], ["kind", "gold.rating.mean", "gold.rating.scale.0", "gold.rating.scale.1"]),
    "labels of another tongue": (VOTES.assign(better=["gauche", "droite", "gauche"]), ["preference.values.a", "preference.values.b"]),
    "rates of something": (RATES.rename(columns={"human_alignment": "score"}), ["kind"]),
    "no label": (VOTES.drop(columns="better"), ["preference.label", "preference.values.a", "preference.values.b"]),
}  # fmt: skip


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_guessed_is_to_be_filled_in_and_told_with_its_line(
    tmp_path: Path, new: Command, case: str
) -> None:
    frame, places = UNKNOWN[case]
    table = written(frame, tmp_path / "table.csv")
    assert new("new", table, "--out", tmp_path / "mine", "--json") == 0, new.err
    found = json.loads(new.out)
    assert found["unknown"]
    assert [one["message"].partition(": ")[0] for one in found["problems"]] == places
    lines = (tmp_path / "mine" / "card.toml").read_text().splitlines()
    assert all(FILL_IN in lines[one["line"] - 1] for one in found["problems"])


def test_a_family_that_is_known_need_not_be_guessed(tmp_path: Path, new: Command) -> None:
    table = written(PARTS, tmp_path / "table.csv")
    assert new("new", table, "--out", tmp_path / "mine", "--family", "rating") == 0
    assert 'family = "rating"' in (tmp_path / "mine" / "card.toml").read_text()
    made = propose(VOTES, "element")
    assert made.sections["element"]["label"] == FILL_IN
    made = propose(LONG, "system")
    assert made.items["model"] == FILL_IN
    assert made.values == {"model": (FILL_IN, "str"), "value": ("alignment_score", "float")}
    assert propose(PARTS, "system").values["value"] == (FILL_IN, "float")
    assert propose(LISTED).sections["gold.quality"]["ratings"] == "quality"
    assert new("new", table, "--out", tmp_path / "x", "--family", "luck") == 2


def test_rows_of_images_and_models_that_repeat_are_no_table_of_models() -> None:
    assert propose(RATED).family == propose(RATED.drop(columns="prompt")).family == "rating"
    twice = pd.concat([MODELS, MODELS], ignore_index=True)
    assert propose(twice).family == "rating"
    assert propose(MODELS.drop(columns="elo")).family == "rating"


def test_a_proposed_board_of_models_ranks_what_orders_them_as_people_do(
    tmp_path: Path, new: Command
) -> None:
    table = written(MODELS, tmp_path / "table.csv")
    assert new("new", table, "--out", tmp_path / "mine") == 0, new.err
    one = load_card(tmp_path / "mine" / "card.toml")
    answers = one.answers(None)
    assert (one.card.kind, one.card.cluster) == ("preference", "model")
    scores = pd.DataFrame({"alike": [2.0, 1, 3], "turned": [2.0, 3, 1]}, list(answers.pair_ids))
    rows = one.measure(ScoreTable(scores), answers, one.plan(answers, 0)).rows
    values = {row.metric: row.value for row in rows if row.measure == "pa"}
    assert values == {"alike": 1.0, "turned": 0.0}
    assert one.card.system is not None
    assert one.card.system.released["one"] == date(2023, 7, 26)


def test_columns_whose_names_differ_by_signs_alone_stay_apart() -> None:
    made = propose(VOTES)
    assert [made.take(one, "more", "named so") for one in ("x y", "x-y", "x y")] == [
        "x_y", "x_y_", "x_y",
    ]  # fmt: skip


def test_a_bracket_alone_makes_no_list() -> None:
    made = propose(RATED[["file", "prompt"]].assign(quality=["[good"] * 4), "rating")
    assert made.sections["gold.rating"]["mean"] == FILL_IN


def test_a_prompt_may_be_known_by_its_id_alone_and_both_images_may_be_bad() -> None:
    frame = VOTES.drop(columns="prompt").assign(
        prompt_id=["p", "q", "p"], better=["left", "right", "bothbad_vote"]
    )
    made = propose(frame)
    assert made.items["prompt"] == "prompt_id" and made.items["text"] == ""
    assert made.sections["preference"]["values"]["bad"] == "bothbad_vote"


def test_a_row_that_is_a_rating_names_no_image_by_its_own_id() -> None:
    made = propose(LONG.assign(id=["1", "2", "3", "4"]))
    assert made.items["pair"] == made.items["image"] == "image"


def test_people_read_what_was_guessed_and_what_is_to_do(tmp_path: Path, new: Command) -> None:
    table = written(UNKNOWN["numbers"][0], tmp_path / "table.csv")
    assert new("new", table, "--out", tmp_path / "mine") == 0
    assert "Not known" in new.out and "Next: " in new.out and "To do: " in new.err


def test_a_card_is_never_replaced_and_a_table_in_its_folder_not_copied(
    tmp_path: Path, new: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_votes").mkdir()
    table = written(VOTES, tmp_path / "my_votes" / "My Votes.csv")
    assert new("new", table) == 0
    assert sorted(one.name for one in (tmp_path / "my_votes").iterdir()) == [
        "My Votes.csv",
        "card.toml",
    ]
    assert new("new", table) == 1
    assert "card.toml" in new.err


NASTY = '"]\nfamily = "x"\n[gold]\x1b[2J<script>${7*7}\x7f\u202e# '


def test_whatever_a_table_holds_stays_text_in_the_card(tmp_path: Path, new: Command) -> None:
    frame = VOTES.assign(**{f"model_{NASTY}": [NASTY, "b", "c"]})
    frame["better"] = [NASTY, "right", NASTY]
    table = written(frame, tmp_path / "table.csv")
    assert new("new", table, "--out", tmp_path / "mine") == 0
    assert "\x1b[2J" not in new.out + new.err
    text = (tmp_path / "mine" / "card.toml").read_text()
    card = tomllib.loads(text)
    assert card["family"] == "preference" and "gold" not in card
    assert all(sign.isprintable() for sign in text.replace("\n", ""))


NO_TABLE: dict[str, bytes | None] = {
    "missing.csv": None, "a.png": b"x", "empty.csv": b"", "head.csv": b"a,b\n", "bad.json": b"{",
    "plain.json": b"3", "none.json": b'{"a": 1}', "bad.parquet": b"PAR1", "bad.xlsx": b"PK",
    "bad.jsonl": b"[1]\n{", "half.csv": b"\xff\xfe",
}  # fmt: skip


@pytest.mark.parametrize("name", NO_TABLE)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str) -> None:
    content = NO_TABLE[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code = "unreadable_file" if name in {"empty.csv", "half.csv"} else "no_table"
    with refused(code, str(tmp_path / name)):
        sample_file(str(tmp_path / name))


def test_a_table_of_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.table_sample._LARGEST_FILE", 10)
    with refused("no_table", "bytes"):
        sample_file(str(written(VOTES, tmp_path / "table.csv")))


@pytest.mark.parametrize(
    ("content", "records"),
    [
        ([{"a": 1}], ""), ({"n": 3, "pairs": [{"a": 1}]}, "pairs[*]"), ({"x": {"a": 1}}, "*"),
    ],
)  # fmt: skip
def test_records_of_a_json_file_are_found(tmp_path: Path, content: Any, records: str) -> None:
    (tmp_path / "t.json").write_text(json.dumps(content))
    found = sample_file(str(tmp_path / "t.json"))
    assert found.records == records and found.rows["a"].tolist() == [1]


# Data sets of the Hub.

REPO = "people/votes"


def parquet(frame: pd.DataFrame, images: int = 0) -> bytes:
    buffer = io.BytesIO()
    pictures = pd.Series([{"bytes": bytes(images), "path": "x.png"}] * len(frame), dtype=object)
    (frame.assign(image=pictures) if images else frame).to_parquet(
        buffer, index=False, compression=None, row_group_size=1
    )
    return buffer.getvalue()


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        files = {
            "cfg/test-00000-of-00001.parquet": parquet(VOTES, 3 << 20),
            "cfg/train-00000-of-00002.parquet": parquet(VOTES),
            "cfg/train-00001-of-00002.parquet": parquet(VOTES),
            "README.md": b"x",
        }
        server.add(REPO, files)
        yield server


def test_of_a_data_set_only_columns_and_first_rows_are_fetched(hub: HubServer) -> None:
    sampled = sample_hub(f"hub:{REPO}", Hub(hub.endpoint), "cfg", "test")
    commit = hub.repositories[REPO].branches["main"]
    assert sampled.origin["revision"] == sampled.revision == commit and len(commit) == 40
    assert sampled.n_rows == 3 and list(sampled.rows) == list(VOTES)
    assert hub.sent("resolve") < 9 << 20
    made = propose(sampled.rows)
    assert made.sections["preference"]["label"] == "better"


def test_the_card_of_a_data_set_names_its_file_at_a_commit_and_copies_nothing(
    hub: HubServer, tmp_path: Path, new: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.commands.new_card.Hub", lambda: Hub(hub.endpoint))
    assert new("new", f"hub:{REPO}", "--out", tmp_path / "mine") == 0, new.err
    assert "fetch mine" in new.out
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["card.toml"]
    (file,) = load_card(tmp_path / "mine" / "card.toml").card.files
    assert (file.repo, file.name) == (REPO, "cfg/test-00000-of-00001.parquet")
    assert file.revision == hub.repositories[REPO].branches["main"]


@pytest.mark.parametrize(
    ("place", "split"), [(f"hub:{REPO}", "train"), (f"hub:{REPO}", "dev"), ("hub:x", "test")]
)
def test_a_data_set_without_that_one_table_is_refused(
    hub: HubServer, place: str, split: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        sample_hub(place, Hub(hub.endpoint), "", split)
    assert caught.value.code == "no_table"
