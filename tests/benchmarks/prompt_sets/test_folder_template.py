"""The folder a model developer begins with."""

from __future__ import annotations

import json
import tomllib

from benchmarks.prompt_sets.folder_template import MANIFEST, TABLE, FolderTemplate, template_files
from benchmarks.prompt_sets.prompt_set import Drawing
from leaderboard.models.model_card import ModelCard

WANTED = FolderTemplate(
    [("A/1", 'a "red" cup\nof tea'), ("a-1", "größer \u2028")],
    (1, 2**64 - 1),
    "gecko_s",
    "e5f8ac2",
    Drawing(least_side=256, most_side=2048),
)


def rows(wanted: FolderTemplate) -> list[dict[str, object]]:
    lines = template_files("m", wanted)[TABLE].split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]


def test_every_prompt_is_wanted_once_with_every_seed() -> None:
    found = rows(WANTED)
    assert len(found) == WANTED.n_images == 4
    assert [(row["prompt_id"], row["seed"]) for row in found] == [
        ("A/1", 1),
        ("A/1", 2**64 - 1),
        ("a-1", 1),
        ("a-1", 2**64 - 1),
    ]
    assert [row["prompt"] for row in found[::2]] == [text for _, text in WANTED.prompts]
    assert len({str(row["file"]).lower() for row in found}) == 4
    assert {(row["least_side"], row["most_side"]) for row in found} == {(256, 2048)}


def test_the_manifest_says_whose_prompts_they_are() -> None:
    assert tomllib.loads(template_files("my-model", WANTED)[MANIFEST].decode()) == {
        "kind": "generations",
        "name": "my-model",
        "version": "1",
        "benchmark": "gecko_s",
        "benchmark_revision": "e5f8ac2",
        "seeds": [1, 2**64 - 1],
        "images": TABLE,
    }


def test_prompts_of_ones_own_name_no_set_and_no_sizes() -> None:
    own = FolderTemplate([("a", "b")], (1,))
    assert "benchmark" not in tomllib.loads(template_files("m", own)[MANIFEST].decode())
    assert set(rows(own)[0]) == {"prompt_id", "seed", "file", "prompt"}


def test_what_is_commented_out_is_how_the_model_card_is_written() -> None:
    text = template_files("m", WANTED)[MANIFEST].decode()
    given = tomllib.loads(text)
    offered = tomllib.loads(
        "\n".join(
            line.removeprefix("# ")
            for line in text.splitlines()
            if line.startswith("# ") and " = " in line
        )
    )
    assert set(ModelCard.model_fields) <= set(offered)
    assert not set(offered) & set(given)
    card = ModelCard.model_validate({key: offered[key] for key in ModelCard.model_fields})
    assert (card.selection, card.best_of) == ("best_of", 4)
