"""What a manifest may say of several outputs, and what its author is told about anything else."""

from __future__ import annotations

import pytest

from evaluator.submission.manifest import Manifest, parse_manifest
from tests.kit.refusals import refused

BOTH = '\n[outputs.alignment]\n[outputs.quality]\ndirection = "lower_is_better"\n'


def manifest(text: str) -> Manifest:
    return parse_manifest(f'name = "m"\n{text}'.encode())


def test_a_module_without_outputs_has_one_metric_of_its_name() -> None:
    found = manifest("range = [0, 1]\nflops_per_pair = 1e9")
    assert list(found.of_metrics) == ["m"]
    assert (found.bounds, found.flops_of_metrics) == ({"m": (0.0, 1.0)}, {"m": 1e9})
    assert found.metric_benchmarks({"toy": "alignment"}) == {}


@pytest.mark.parametrize("text", ['outputs = ["alignment", "quality"]', BOTH])
def test_names_in_a_list_or_in_tables_are_metrics_in_their_order(text: str) -> None:
    assert list(manifest(text).of_metrics) == ["m-alignment", "m-quality"]


def test_what_an_output_does_not_say_is_as_the_module_says() -> None:
    found = manifest(f"range = [0, 1]\nflops_per_pair = 1e9{BOTH}range = [1, 5]")
    assert found.lower_is_better == ("m-quality",)
    assert found.bounds == {"m-alignment": (0.0, 1.0), "m-quality": (1.0, 5.0)}
    assert found.flops_of_metrics == {"m-alignment": 1e9, "m-quality": 1e9}


def test_an_output_is_on_the_benchmarks_and_kinds_that_it_names() -> None:
    kinds = {"a": "alignment", "b": "quality", "c": "quality"}
    found = manifest(f'{BOTH}kinds = ["quality"]\nbenchmarks = ["a", "b"]')
    assert found.metric_benchmarks(kinds) == {  # type: ignore[arg-type]
        "m-alignment": ("a", "b", "c"),
        "m-quality": ("b",),
    }
    assert manifest(BOTH).metric_benchmarks(kinds) == {}  # type: ignore[arg-type]
    with refused("output_nowhere"):
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
    with refused("bad_manifest", "outputs", named):
        manifest(text)
