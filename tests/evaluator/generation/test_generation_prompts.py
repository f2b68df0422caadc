from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import image_file, parse_seeds
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.registry import find, load_registry
from evaluator.commands.generate_options import prompts_by_name, seeds_of
from evaluator.generation.prompts import Choice, Prompt, benchmark_prompts, file_prompts

ROWS = """prompt_id,prompt,split,skills
c1,two cats,train,counting;basic
c2,"a ""red"" cat",test,colour
c3,null,test,counting
"""


def prompt_file(folder: Path, content: str) -> Path:
    path = folder / "prompts.csv"
    path.write_text(content, encoding="utf-8")
    return path


def test_seeds_are_read_in_their_order() -> None:
    assert parse_seeds("42, 3407,5096") == (42, 3407, 5096)


@pytest.mark.parametrize("text", ["", "a", "-1", "1.5", "1,1", str(2**64), "1 2", "٣"])
def test_what_is_no_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(SubmitterError) as error:
        parse_seeds(text)
    assert error.value.code == "bad_seeds"


def test_a_file_of_prompts_is_read_as_text(tmp_path: Path) -> None:
    found = file_prompts(prompt_file(tmp_path, ROWS), Choice())
    assert found.prompts == (
        Prompt("c1", "two cats"),
        Prompt("c2", 'a "red" cat'),
        Prompt("c3", "null"),
    )


def test_skills_splits_and_a_limit_choose(tmp_path: Path) -> None:
    path = prompt_file(tmp_path, ROWS)
    assert [p.prompt_id for p in file_prompts(path, Choice(skills=("counting",))).prompts] == [
        "c1",
        "c3",
    ]
    chosen = Choice(skills=("counting", "colour"), splits=("test",), limit=1)
    assert [p.prompt_id for p in file_prompts(path, chosen).prompts] == ["c2"]


def test_an_unknown_skill_is_named_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"no skill 'count'.*counting") as error:
        file_prompts(prompt_file(tmp_path, ROWS), Choice(skills=("count",)))
    assert error.value.code == "unknown_choice"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,prompt\n1,a", "no column prompt_id"),
        ("prompt_id,prompt\n1,a\n1,b\n", "twice: '1'"),
        ("prompt_id,prompt\n1,\n2,  \n", "without a word: '1', '2'"),
        ("prompt_id,prompt\n,a\n", "without a prompt_id: 'a'"),
        ("", "cannot be read as CSV"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(SubmitterError) as error:
        file_prompts(prompt_file(tmp_path, content), Choice())
    assert error.value.code == "bad_prompts"
    assert said in str(error.value)


def test_a_benchmark_without_a_prompt_set_says_so() -> None:
    with pytest.raises(SubmitterError) as error:
        benchmark_prompts(find(load_registry(), "demo_ts2"), None, Choice())
    assert error.value.code == "no_prompts"


def test_a_prompt_set_comes_with_how_it_is_to_be_drawn(tmp_path: Path) -> None:
    demo = load_prompt_sets()["demo_prompts"]
    chosen = benchmark_prompts(demo, None, Choice(skills=("count",), limit=3))
    assert len(chosen.prompts) == 3
    assert (chosen.benchmark, chosen.revision) == ("demo_prompts", demo.card.revision)
    assert chosen.drawing == demo.drawing
    own = file_prompts(prompt_file(tmp_path, ROWS), Choice())
    assert own.drawing is None


def test_a_prompt_set_is_found_by_name_and_proposes_its_seeds(tmp_path: Path) -> None:
    chosen = prompts_by_name("demo_prompts", None, Choice())
    assert len(chosen.prompts) == 76
    assert seeds_of(None, chosen, (42,)) == (1, 2)
    assert seeds_of("5,6", chosen, (42,)) == (5, 6)
    own = file_prompts(prompt_file(tmp_path, ROWS), Choice())
    assert seeds_of(None, own, (42,)) == seeds_of(None, None, (42,)) == (42,)
    with pytest.raises(SubmitterError) as error:
        prompts_by_name("nothing", None, Choice())
    assert error.value.code == "unknown_benchmark"


@pytest.mark.paper
def test_the_prompts_of_a_benchmark_come_by_skill(assay_data: Path) -> None:
    benchmark = find(load_registry(), "genai_527")
    everything = benchmark_prompts(benchmark, assay_data, Choice())
    assert len(everything.prompts) == 527
    assert (everything.benchmark, everything.revision) == ("genai_527", benchmark.card.revision)
    counting = benchmark_prompts(benchmark, assay_data, Choice(skills=("counting",)))
    assert 0 < len(counting.prompts) < 527


def test_file_names_are_stable_and_hold_nothing_of_a_prompt_or_a_path() -> None:
    assert image_file("Counting 7", 42) == "images/counting-7-83d477283b_s42.png"
    for name in ("../../etc/passwd", "a/b", "C:\\x", "нет", "", "x" * 500, "a\nb", "CON"):
        file = image_file(name, 1)
        assert file.startswith("images/")
        assert len(file) < 80
        assert set(file[7:]) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.s")
        assert ".." not in file


def test_ids_that_look_alike_have_files_of_their_own() -> None:
    names = ["a b", "a-b", "A b", "a  b", "a b "]
    assert len({image_file(name, 1).lower() for name in names}) == len(names)
