"""The form of a scoring module: everything that is wrong, at once, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem
from benchmarks.registry import load_registry
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.manifest import Manifest, parse_manifest
from evaluator.submission.validate import examine_source, validated, validated_source
from tests.evaluator.submission.archives import folder_of, zipped
from tests.kit import refusals
from tests.kit.toy import Toy

REGISTRY = {"toy": Toy()}
SCORER = b"class Scorer: ..."
COMMIT = "0123456789abcdef0123456789abcdef01234567"
Module = Callable[..., Path]


@pytest.fixture
def module(tmp_path: Path) -> Module:
    def made(manifest: str = "", **files: bytes) -> Path:
        text = f'name = "m"\n{manifest}'.encode()
        return folder_of(tmp_path / "m", {"assay.toml": text, "scorer.py": SCORER, **files})

    return made


def accepted(source: Path) -> Manifest:
    with validated_source(source, REGISTRY) as found:
        return found.manifest


def told(source: Path) -> tuple[Problem, ...]:
    """All problems; the door for submissions refuses for the same ones."""
    problems = examine_source(source, REGISTRY).problems
    assert all(problem.hint for problem in problems)
    with pytest.raises(SubmitterError) as caught, validated_source(source, REGISTRY):
        raise AssertionError
    code = problems[0].code if len(problems) == 1 else "several_problems"
    assert caught.value.code == code
    assert all(problem.message in caught.value.message for problem in problems)
    return problems


def refused(source: Path, code: str, line: int | None = None) -> str:
    (problem,) = told(source)
    assert (problem.code, problem.line) == (code, line)
    return f"{problem.message} {problem.hint}"


def test_everything_that_is_wrong_is_told_at_once_with_file_and_line(module: Module) -> None:
    manifest = """versoin = "2"
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
    source = module(manifest, **{"a.pkl": b"", "wights.safetensors": b"\x80\x04p", "b.so": b""})
    problems = told(source)
    assert [(p.place, p.code) for p in problems] == [
        ("a.pkl", "refused_file"),
        ("b.so", "refused_file"),
        ("assay.toml:2", "bad_manifest"),
        ("assay.toml:6", "no_weights"),
        ("assay.toml:7", "no_entry_point"),
        ("assay.toml:8", "unknown_benchmark"),
        ("assay.toml:11", "unknown_benchmark"),
        ("assay.toml:12", "bad_manifest"),
        ("assay.toml:15", "bad_manifest"),
        ("wights.safetensors", "bad_weights"),
    ]
    meant = {"2": "'version'", "6": "'wights.safetensors'", "7": "'scorer.py'", "8": "'toy'"}
    hints = {p.place.removeprefix("assay.toml:"): p.hint for p in problems}
    assert [line for line, name in meant.items() if name not in hints[line]] == []


def test_an_examination_says_what_would_be_submitted_and_what_it_can(module: Module) -> None:
    source = module('version = "3"')
    found = examine_source(source, REGISTRY)
    assert (found.problems, found.name, found.version) == ((), "m", "3")
    assert (found.files, found.n_bytes, found.benchmarks) == (2, len(SCORER) + 24, ("toy",))
    with taken_in(source) as content:
        assert found.content_sha256 == content.sha256
        assert validated(content, REGISTRY).manifest.name == "m"
    spoilt = examine_source(module("x = 1", **{"a.pkl": b""}), REGISTRY)
    assert (spoilt.name, spoilt.files, spoilt.content_sha256) == ("m", 2, "")
    absent = examine_source(source.parent / "absent", REGISTRY)
    assert (absent.name, absent.problems[0].code) == ("", "file_missing")


def test_a_file_that_is_refused_is_not_told_as_missing_too(tmp_path: Path) -> None:
    files = {"assay.toml": b'name = "m"', "Scorer.py": b"", "scorer.py": b""}
    refused(zipped(tmp_path / "m.zip", files), "duplicate_name")


def test_weights_must_be_there_and_be_safetensors(module: Module) -> None:
    wants = 'weights = "w.safetensors"'
    refused(module(wants), "no_weights", 2)
    refused(module(wants, **{"w.safetensors": b"\x80\x04pickle"}), "bad_weights")
    good = (2).to_bytes(8, "little") + b"{}"
    assert accepted(module(wants, **{"w.safetensors": good})).weights


# What a manifest may say ------------------------------------------------------------------------

HUB_MODEL = f"openai/clip-vit-base-patch32@{COMMIT}"
TAKEN: dict[str, dict[str, Any]] = {
    'description = "Größe, 文, עברית, 👩‍🔬 and lines\\nof text"\nauthors = ["Ō"]': {
        "authors": ("Ō",), "description": "Größe, 文, עברית, 👩‍🔬 and lines\nof text",
    },
    "": {"name": "m", "version": "1", "entry_point": "scorer:Scorer", "flops_of_metrics": {}},
    'trained_on = ["toy"]': {"trained_on": ("toy",)},
    "flops_per_pair = 9.9e10": {"flops_of_metrics": {"m": 9.9e10}},
    "flops_per_pair = 4000000000": {"flops_per_pair": 4e9},
    f'models = ["{HUB_MODEL}"]': {"models": (HUB_MODEL,)},
}  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_what_a_manifest_says_is_kept(line: str, module: Module) -> None:
    manifest = accepted(module(line))
    assert {name: getattr(manifest, name) for name in TAKEN[line]} == TAKEN[line]


def test_a_family_of_benchmarks_may_be_what_it_was_trained_on(module: Module) -> None:
    registry = load_registry()
    families = {b.card.family for b in registry.values()} - registry.keys()
    source = module(f'trained_on = ["{families.pop()}"]')
    assert examine_source(source, registry).problems == ()


NINE = ", ".join(f'"o/n{i}@{COMMIT}"' for i in range(9))
REFUSED = [
    *((f'{key} = "a\\{code}b"', code.upper().replace("U", "U+"))
      for key in ("description", "licence")
      for code in ("u001b", "u202e", "u2066", "u0000", "u009b")),
    *((f"range = {limits}", "range") for limits in ("[nan, 1]", "[0, inf]", "[1, 0]", "[1, 1]")),
    *((f"flops_per_pair = {flops}", "1e+21")
      for flops in ("nan", "inf", "-inf", "-1", "0", "0.5", "-0.0", "1e400", "-1e400", "1e22",
                    "1" + "0" * 400, "'9.9e10'", "true", "false", "[1e9]", "{m = 1e9}",
                    "1979-05-27")),
    *((f'models = ["{model}"]', "owner/name@commit")
      for model in ("owner/name", "owner/name@main", f"owner/name@{COMMIT[:39]}",
                    f"owner/name@{COMMIT.upper()}", f"name@{COMMIT}", f"a/b/c@{COMMIT}",
                    f"../name@{COMMIT}", f"owner/..@{COMMIT}", f"owner/a--b@{COMMIT}",
                    f"owner/a b@{COMMIT}", f"https://hub/owner/name@{COMMIT}")),
    (f"models = [{NINE}]", "8"),
    (f'models = ["o/n@{COMMIT}", "o/n@{COMMIT[::-1]}"]', "once"),
    ('benchmarks = ["toy", "toy"]', "'toy'"),
    ('trained_on = ["<b>"]', "'<b>'"),
    ('weights = "w.pt"', "weights"),
    ("nonsense\nx = 1", "TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_what_a_manifest_may_not_say_is_refused(line: str, said: str, module: Module) -> None:
    assert said in refused(module(line), "bad_manifest", 2)


@pytest.mark.parametrize("key", ["benchmarks", "trained_on"])
def test_an_unknown_benchmark_is_named_with_those_there_are(key: str, module: Module) -> None:
    said = refused(module(f'{key} = ["x"]'), "unknown_benchmark", 2)
    assert f"{key} names 'x'" in said and "toy" in said


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "http://a b", "https://x/\\u0022onload=1", "https://", "HTTPS://x"],
)
def test_links_must_be_web_addresses(link: str, module: Module) -> None:
    refused(module(f'[links]\nhome = "{link}"'), "bad_manifest", 3)


def test_odd_files_are_no_manifest(tmp_path: Path) -> None:
    def manifest(content: bytes) -> Path:
        return folder_of(tmp_path / "m", {"assay.toml": content, "scorer.py": SCORER})

    assert accepted(manifest(b'\xef\xbb\xbfname = "m"')).name == "m"
    refused(manifest(b'name = "\xff"'), "bad_manifest")
    assert "'name'" in refused(manifest(b'version = "1"'), "bad_manifest")
    assert "64 kB" in refused(manifest(b'name = "m"' + b" " * (64 << 10)), "bad_manifest")
    for opening, closing in ((b"[", b"]"), (b"{a=", b"1}")):
        nested = b'name = "m"\nx = ' + opening * 9000 + closing * 9000
        assert "nested" in refused(manifest(nested), "bad_manifest")
    refused(manifest(b'name = "<b>"'), "bad_manifest", 1)
    for name in ("pair_id", "element_id", "element_score", "score"):
        assert "name a metric" in refused(manifest(f'name = "{name}"'.encode()), "bad_manifest", 1)
    for broken in ('description = "\\ud800"', "links = " + "[" * 20_000, "links = " + "{a=" * 5_000,
                   "range = [0, " + "1" * 5_000 + "]"):  # fmt: skip
        (problem,) = told(manifest(f'name = "m"\n{broken}'.encode()))
        assert problem.code == "bad_manifest" and "TOML" in problem.message
    elsewhere = folder_of(tmp_path / "n", {"a/assay.toml": b'name = "m"', "b.py": b""})
    assert "'a/assay.toml'" in refused(elsewhere, "no_manifest")


# Several outputs --------------------------------------------------------------------------------

BOTH = '\n[outputs.alignment]\n[outputs.quality]\ndirection = "lower_is_better"\n'


def parsed(text: str) -> Manifest:
    return parse_manifest(f'name = "m"\n{text}'.encode())


def test_a_module_without_outputs_has_one_metric_of_its_name() -> None:
    found = parsed("range = [0, 1]\nflops_per_pair = 1e9")
    assert list(found.of_metrics) == ["m"]
    assert (found.bounds, found.flops_of_metrics) == ({"m": (0.0, 1.0)}, {"m": 1e9})
    assert found.metric_benchmarks({"toy": "alignment"}) == {}


@pytest.mark.parametrize("text", ['outputs = ["alignment", "quality"]', BOTH])
def test_names_in_a_list_or_in_tables_are_metrics_in_their_order(text: str) -> None:
    assert list(parsed(text).of_metrics) == ["m-alignment", "m-quality"]


def test_what_an_output_does_not_say_is_as_the_module_says() -> None:
    found = parsed(f"range = [0, 1]\nflops_per_pair = 1e9{BOTH}range = [1, 5]")
    assert found.lower_is_better == ("m-quality",)
    assert found.bounds == {"m-alignment": (0.0, 1.0), "m-quality": (1.0, 5.0)}
    assert found.flops_of_metrics == {"m-alignment": 1e9, "m-quality": 1e9}


def test_an_output_is_on_the_benchmarks_and_kinds_that_it_names() -> None:
    kinds = {"a": "alignment", "b": "quality", "c": "quality"}
    found = parsed(f'{BOTH}kinds = ["quality"]\nbenchmarks = ["a", "b"]')
    assert found.metric_benchmarks(kinds) == {  # type: ignore[arg-type]
        "m-alignment": ("a", "b", "c"),
        "m-quality": ("b",),
    }
    assert parsed(BOTH).metric_benchmarks(kinds) == {}  # type: ignore[arg-type]
    with refusals.refused("output_nowhere"):
        found.metric_benchmarks({"a": "alignment"})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("outputs = []", "2 to 8"),
        ('outputs = ["a"]', "2 to 8"),
        (f"outputs = {[str(n) for n in range(9)]}", "names 9"),
        ('outputs = ["a", "a"]', "more than once"),
        ('outputs = ["quality", "Quality"]', "case"),
        ('outputs = ["a b", "c"]', "'a b'"),
        ('outputs = ["pair_id", "c"]', "'pair_id'"),
        (f'outputs = ["{"x" * 63}", "c"]', "64"),
        ('outputs = ["a", 1]', "list of names"),
        ('outputs = "alignment"', "list of names"),
        ('outputs = [["a"], ["b"]]', "list of names"),
        (f"{BOTH}range = [5, 1]", "outputs.quality.range"),
        (f'{BOTH}kinds = ["art"]', "outputs.quality.kinds"),
        (f"{BOTH}colour = 1", "outputs.quality.colour"),
        (f'benchmarks = ["ts2"]{BOTH}benchmarks = ["gecko"]', "gecko"),
        ('method = "compare"\noutputs = ["a", "b"]', "compare"),
    ],
)
def test_anything_else_is_refused_by_what_is_wrong(text: str, named: str) -> None:
    with refusals.refused("bad_manifest", "outputs", named):
        parsed(text)
