"""Registry of prompt sets: every module beside this one that defines `PROMPT_SETS`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from benchmarks import prompt_sets
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.schema import Benchmark


def load_prompt_sets() -> Mapping[str, PromptSet]:
    """All prompt sets by name, in the order of their modules."""
    found: dict[str, PromptSet] = {}
    for module in pkgutil.iter_modules(prompt_sets.__path__, f"{prompt_sets.__name__}."):
        declared = getattr(importlib.import_module(module.name), "PROMPT_SETS", ())
        if not isinstance(declared, tuple) or not all(isinstance(s, PromptSet) for s in declared):
            raise PlatformError(
                "invalid_benchmark", f"{module.name}: PROMPT_SETS is no tuple of prompt sets."
            )
        for one in declared:
            if one.name in found:
                raise PlatformError(
                    "duplicate_benchmark", f"Two prompt sets are called {one.name!r}."
                )
            found[one.name] = one
    return MappingProxyType(found)


def with_prompt_sets(
    benchmarks: Mapping[str, Benchmark], sets: Mapping[str, PromptSet]
) -> Mapping[str, Benchmark]:
    """Benchmarks of metrics, then prompt sets, by name."""
    for name in sets:
        if name in benchmarks:
            raise PlatformError(
                "duplicate_benchmark", f"A benchmark and a prompt set are called {name!r}."
            )
    return MappingProxyType({**benchmarks, **sets})


def find_prompt_set(known: Mapping[str, PromptSet], name: str) -> PromptSet:
    """Look a prompt set up."""
    if name not in known:
        raise SubmitterError(
            "unknown_prompt_set",
            f"There is no prompt set {name[:80]!r}.",
            f"Prompt sets: {', '.join(known)}.",
        )
    return known[name]
