"""Registry of benchmarks: every folder with cards of families (`card*.toml`), or with a `protocol.py`.

A `protocol.py` defines `BENCHMARKS`. Nothing is registered by hand, so a benchmark is added by
adding one folder. The setting `benchmarks` names further cards, of which no code is run.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.families import load_card
from benchmarks.families.benchmark import CardBenchmark
from benchmarks.measures import load_further, with_further
from benchmarks.named_cards import named_benchmarks
from benchmarks.prompt_sets.prompt_set import load_prompt_sets
from benchmarks.schema import Benchmark
from benchmarks.settings.model import value_of

BUILT_IN = Path(__file__).parent


def load_registry(
    extra: Sequence[Path] = (), cards: Sequence[str] | None = None
) -> Mapping[str, Benchmark]:
    """All benchmarks of this package and of further folders of benchmark folders, by name.

    Those with simulated ratings come last.

    `cards`: places of cards, see `named_cards`; None: those of the setting `benchmarks`.

    Raises:
        AssayError: `duplicate_benchmark`, `invalid_benchmark`.
    """
    found: dict[str, Benchmark] = {}
    for root in (BUILT_IN, *extra):
        for benchmark in _benchmarks_below(root):
            if benchmark.name in found:
                raise PlatformError(
                    "duplicate_benchmark",
                    f"Two benchmark folders define {benchmark.name!r} (second one below {root}).",
                    "Rename one of them in its card.toml.",
                )
            found[benchmark.name] = benchmark
    places = value_of("benchmarks", os.environ) if cards is None else cards
    if places:
        _add_named(found, named_benchmarks(places))
    for benchmark in found.values():
        if isinstance(benchmark, CardBenchmark):
            benchmark.link(found)
    ordered = dict(sorted(found.items(), key=lambda named: named[1].card.simulated))
    return MappingProxyType(with_further(ordered, load_further()))


def _add_named(found: dict[str, Benchmark], named: Iterable[Benchmark]) -> None:
    taken = {*found, *load_prompt_sets()}
    for benchmark in named:
        if benchmark.name in taken:
            raise SubmitterError(
                "duplicate_benchmark",
                f"{benchmark.home}: there is a benchmark or prompt set {benchmark.name!r} already.",
                "Give it another name in its card.toml.",
            )
        taken.add(benchmark.name)
        found[benchmark.name] = benchmark


def find(registry: Mapping[str, Benchmark], name: str) -> Benchmark:
    """Look a benchmark up."""
    if name not in registry:
        raise SubmitterError(
            "unknown_benchmark",
            f"There is no benchmark {name!r}.",
            f"Known benchmarks: {', '.join(sorted(registry))}.",
        )
    return registry[name]


def _benchmarks_below(root: Path) -> Iterator[Benchmark]:
    for folder in sorted(place for place in root.iterdir() if place.is_dir()):
        file = folder / "protocol.py"
        if not file.is_file():
            yield from map(load_card, sorted(folder.glob("card*.toml")))
            continue
        module = _import(file)
        declared = getattr(module, "BENCHMARKS", None)
        if not isinstance(declared, tuple) or not all(isinstance(b, Benchmark) for b in declared):
            raise PlatformError(
                "invalid_benchmark",
                f"{file} does not define BENCHMARKS, a tuple of Benchmark objects.",
            )
        yield from declared


def _import(file: Path) -> ModuleType:
    if file.parent.parent == BUILT_IN:
        return importlib.import_module(f"benchmarks.{file.parent.name}.protocol")
    name = f"assay_benchmark_{file.parent.name}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PlatformError("invalid_benchmark", f"{file} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
