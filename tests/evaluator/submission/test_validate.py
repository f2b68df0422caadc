"""The form of a scoring module: everything that is wrong, at once, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.manifest import Manifest
from evaluator.submission.validate import examine_source, validated, validated_source
from leaderboard.desk import Problem
from tests.benchmarks.toy import Toy
from tests.evaluator.submission.archives import folder_of, zipped

REGISTRY = {"toy": Toy()}
SCORER = b"class Scorer: ..."
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "module"


def module(place: Path, manifest: str = 'name = "m"', **files: bytes) -> Path:
    return folder_of(place, {"assay.toml": manifest.encode(), "scorer.py": SCORER, **files})


def accepted(source: Path) -> Manifest:
    with validated_source(source, REGISTRY) as found:
        return found.manifest


def told(source: Path) -> tuple[Problem, ...]:
    """All problems; the door for submissions refuses for the same ones."""
    problems = examine_source(source, REGISTRY).problems
    with pytest.raises(SubmitterError) as caught, validated_source(source, REGISTRY):
        raise AssertionError
    code = problems[0].code if len(problems) == 1 else "several_problems"
    assert caught.value.code == code
    assert all(problem.message in caught.value.message for problem in problems)
    return problems


def refused(source: Path, code: str, line: int | None = None) -> str:
    (problem,) = told(source)
    assert (problem.code, problem.line) == (code, line)
    assert problem.hint
    return f"{problem.message} {problem.hint}"


def in_manifest(place: Path, manifest: str, line: int | None) -> str:
    return refused(module(place, manifest), "bad_manifest", line)


def test_a_name_is_all_a_manifest_needs(place: Path) -> None:
    manifest = accepted(module(place))
    assert (manifest.name, manifest.version, manifest.entry_point) == ("m", "1", "scorer:Scorer")


def test_everything_that_is_wrong_is_told_at_once_with_file_and_line(place: Path) -> None:
    manifest = """# ours
name = "<b>"
versoin = "2"
description = '''
benchmarks = ["not a key"]
'''
weights = "weights.safetensors"
entry_point = "other:Scorer"
benchmarks = [
  "toi",
]
trained_on = ["toy", "tyo"]
models = ["owner/name"]

[links]
home = "javascript:alert(1)"
"""
    source = module(
        place, manifest, **{"a.pkl": b"", "wights.safetensors": b"\x80\x04pickle", "b.so": b""}
    )
    found = [(p.place, p.code) for p in told(source)]
    assert found == [
        ("a.pkl", "refused_file"),
        ("b.so", "refused_file"),
        ("assay.toml:2", "bad_manifest"),
        ("assay.toml:3", "bad_manifest"),
        ("assay.toml:7", "no_weights"),
        ("assay.toml:8", "no_entry_point"),
        ("assay.toml:9", "unknown_benchmark"),
        ("assay.toml:12", "unknown_benchmark"),
        ("assay.toml:13", "bad_manifest"),
        ("assay.toml:16", "bad_manifest"),
        ("wights.safetensors", "bad_weights"),
    ]
    hints = {p.place: p.hint for p in told(source)}
    assert "Did you mean 'version'" in hints["assay.toml:3"]
    assert "Did you mean 'wights.safetensors'" in hints["assay.toml:7"]
    assert "Did you mean 'toy'" in hints["assay.toml:9"]


def test_an_examination_says_what_would_be_submitted(place: Path) -> None:
    source = module(place, 'name = "m"\nversion = "3"')
    found = examine_source(source, REGISTRY)
    assert (found.problems, found.name, found.version) == ((), "m", "3")
    assert (found.files, found.n_bytes) == (2, len(SCORER) + 24)
    assert found.benchmarks == ("toy",)
    with taken_in(source) as content:
        assert found.content_sha256 == content.sha256


def test_an_examination_with_problems_still_says_what_it_can(place: Path) -> None:
    found = examine_source(module(place, 'name = "m"\nx = 1', **{"a.pkl": b""}), REGISTRY)
    assert (found.name, found.files, found.content_sha256) == ("m", 2, "")
    assert examine_source(module(place, 'name = ""'), REGISTRY).name == ""
    assert examine_source(place.parent / "absent", REGISTRY).problems[0].code == "file_missing"


def test_a_content_that_was_taken_in_is_validated_on_its_own(place: Path) -> None:
    with taken_in(module(place)) as content:
        assert validated(content, REGISTRY).manifest.name == "m"
    with taken_in(module(place, "x = 1")) as content, pytest.raises(SubmitterError) as caught:
        validated(content, REGISTRY)
    assert caught.value.code == "several_problems"
    assert "'name' is missing" in caught.value.message


def test_a_file_that_is_refused_is_not_told_as_missing_too(place: Path) -> None:
    source = zipped(
        place.with_suffix(".zip"), {"assay.toml": b'name = "m"', "Scorer.py": b"", "scorer.py": b""}
    )
    refused(source, "duplicate_name")


def test_a_manifest_that_is_not_toml_names_the_line(place: Path) -> None:
    assert "not TOML" in in_manifest(place, 'name = "m"\nnonsense\nx = 1', 2)


def test_a_manifest_in_a_subfolder_is_pointed_at(place: Path) -> None:
    source = folder_of(place, {"a/assay.toml": b'name = "m"', "b.py": b""})
    assert "'a/assay.toml'" in refused(source, "no_manifest")


def test_a_missing_entry_point_names_the_file(place: Path) -> None:
    said = refused(module(place, 'name = "m"\nentry_point = "scorers:Scorer"'), "no_entry_point", 2)
    assert "scorers.py" in said
    assert "Did you mean 'scorer.py'" in said


def test_weights_must_be_there_and_be_safetensors(place: Path) -> None:
    wants = 'name = "m"\nweights = "w.safetensors"'
    refused(module(place, wants), "no_weights", 2)
    refused(module(place, wants, **{"w.safetensors": b"\x80\x04pickle"}), "bad_weights")
    good = (2).to_bytes(8, "little") + b"{}"
    assert accepted(module(place, wants, **{"w.safetensors": good})).weights
    assert "weights" in in_manifest(place, 'name = "m"\nweights = "w.pt"', 2)


def test_an_unknown_benchmark_is_named(place: Path) -> None:
    for key in ("benchmarks", "trained_on"):
        said = refused(module(place, f'name = "m"\n{key} = ["x"]'), "unknown_benchmark", 2)
        assert f"{key} names 'x'" in said
        assert "Known names: toy" in said


def test_a_family_of_benchmarks_may_be_what_it_was_trained_on(place: Path) -> None:
    registry = load_registry()
    families = {b.card.family for b in registry.values()} - registry.keys()
    assert families
    source = module(place, f'name = "m"\ntrained_on = ["{families.pop()}"]')
    assert examine_source(source, registry).problems == ()


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "http://a b", "https://x/\\u0022onload=1", "https://", "HTTPS://x"],
)
def test_links_must_be_web_addresses(place: Path, link: str) -> None:
    in_manifest(place, f'name = "m"\n[links]\nhome = "{link}"', 3)


@pytest.mark.parametrize("key", ["description", "licence"])
@pytest.mark.parametrize("character", ["u001b", "u202e", "u2066", "u0000", "u009b"])
def test_characters_that_change_how_text_is_shown_are_refused(
    place: Path, key: str, character: str
) -> None:
    said = in_manifest(place, f'name = "m"\n{key} = "a\\{character}b"', 2)
    assert character.upper().replace("U", "U+") in said


def test_texts_of_all_languages_are_taken(place: Path) -> None:
    text = "Größe, 文, עברית, 👩‍🔬 and lines\\nof text"
    manifest = accepted(module(place, f'name = "m"\ndescription = "{text}"\nauthors = ["Ō"]'))
    assert "👩‍🔬" in manifest.description


@pytest.mark.parametrize(
    "text",
    ["links = " + "[" * 20_000, "links = " + "{a=" * 5_000, "range = [0, " + "1" * 5_000 + "]"],
)
def test_a_manifest_made_to_break_its_reader_is_refused(place: Path, text: str) -> None:
    (problem,) = told(module(place, f'name = "m"\n{text}'))
    assert "not TOML" in problem.message


def test_a_manifest_that_is_not_unicode_or_too_long_is_refused(place: Path) -> None:
    source = folder_of(place, {"assay.toml": b'name = "\xff"', "scorer.py": b""})
    refused(source, "bad_manifest")
    (problem,) = told(module(place, 'name = "m"\ndescription = "\\ud800"'))
    assert problem.code == "bad_manifest"
    assert "64 kB" in in_manifest(place, 'name = "m"' + " " * (64 << 10), None)


def test_a_byte_order_mark_is_no_part_of_the_manifest(place: Path) -> None:
    assert accepted(module(place, '\ufeffname = "m"')).name == "m"


@pytest.mark.parametrize("name", ["pair_id", "element_id", "element_score", "score"])
def test_a_metric_cannot_be_named_like_a_column(place: Path, name: str) -> None:
    assert "cannot name a metric" in in_manifest(place, f'name = "{name}"', 1)


@pytest.mark.parametrize("limits", ["[nan, 1]", "[0, inf]", "[1, 0]", "[1, 1]"])
def test_a_range_is_two_finite_numbers_in_order(place: Path, limits: str) -> None:
    assert "range" in in_manifest(place, f'name = "m"\nrange = {limits}', 2)


def test_a_benchmark_is_named_once(place: Path) -> None:
    said = in_manifest(place, 'name = "m"\nbenchmarks = ["toy", "toy"]', 2)
    assert "'toy' is named more than once" in said


def test_what_it_was_trained_on_has_the_form_of_a_name(place: Path) -> None:
    assert accepted(module(place, 'name = "m"\ntrained_on = ["toy"]')).trained_on == ("toy",)
    assert "'<b>'" in in_manifest(place, 'name = "m"\ntrained_on = ["<b>"]', 2)


def test_flops_of_a_pair_may_be_declared_and_need_not_be(place: Path) -> None:
    assert accepted(module(place, 'name = "m"\nflops_per_pair = 9.9e10')).flops_of_metrics == {
        "m": 9.9e10
    }
    assert accepted(module(place, 'name = "m"\nflops_per_pair = 4000000000')).flops_per_pair == 4e9
    assert accepted(module(place, 'name = "m"')).flops_of_metrics == {}


@pytest.mark.parametrize(
    "flops",
    ["nan", "inf", "-inf", "-1", "0", "0.5", "-0.0", "1e400", "-1e400", "1e22", "1" + "0" * 400,
     "'9.9e10'", "true", "false", "[1e9]", "{m = 1e9}", "1979-05-27"],
)  # fmt: skip
def test_flops_that_are_no_such_number_are_refused(place: Path, flops: str) -> None:
    said = in_manifest(place, f'name = "m"\nflops_per_pair = {flops}', 2)
    assert "flops_per_pair: must be a number from 1 to 1e+21: the floating-point operations" in said


def test_models_of_the_hub_are_named_with_their_commit(place: Path) -> None:
    wanted = f"openai/clip-vit-base-patch32@{COMMIT}"
    assert accepted(module(place, f'name = "m"\nmodels = ["{wanted}"]')).models == (wanted,)


@pytest.mark.parametrize(
    "model",
    [
        "owner/name",
        "owner/name@main",
        f"owner/name@{COMMIT[:39]}",
        f"owner/name@{COMMIT.upper()}",
        f"name@{COMMIT}",
        f"a/b/c@{COMMIT}",
        f"../name@{COMMIT}",
        f"owner/..@{COMMIT}",
        f"owner/a--b@{COMMIT}",
        f"owner/a b@{COMMIT}",
        f"https://hub/owner/name@{COMMIT}",
    ],
)
def test_a_model_without_its_commit_or_a_plain_name_is_refused(place: Path, model: str) -> None:
    assert "owner/name@commit" in in_manifest(place, f'name = "m"\nmodels = ["{model}"]', 2)


def test_models_are_few_and_different(place: Path) -> None:
    nine = ", ".join(f'"o/n{i}@{COMMIT}"' for i in range(9))
    assert "8 are fetched at most" in in_manifest(place, f'name = "m"\nmodels = [{nine}]', 2)
    other = COMMIT[::-1]
    twice = f'"o/n@{COMMIT}", "o/n@{other}"'
    assert "more than once" in in_manifest(place, f'name = "m"\nmodels = [{twice}]', 2)
