"""Arrows point one way: benchmarks <- leaderboard <- evaluator <- app; nothing needs a tool."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.house.modules import modules_of, parsed

MAY_IMPORT = {
    "benchmarks": {"benchmarks"},
    "leaderboard": {"benchmarks", "leaderboard"},
    "evaluator": {"benchmarks", "leaderboard", "evaluator"},
    "app": {"benchmarks", "leaderboard", "evaluator"},
    # Tools of a release and of makers: they stand beside all that, and nothing stands on them.
    "supply": {"benchmarks", "leaderboard", "evaluator", "supply"},
    "tools": {"benchmarks", "leaderboard", "evaluator", "tools"},
    "deploy": set(),
}
OURS = {*MAY_IMPORT, "tests", "benchmarks_perf"}


def imported(module: Path) -> set[str]:
    """Packages of ours that a module imports, by statement or by a name that is written out."""
    names: set[str] = set()
    for node in ast.walk(parsed(module)):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(name), level=0):
                names.add(name)
            case ast.Call(
                func=ast.Name("import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(name)), *_],
            ):
                names.add(name)
    return {name.partition(".")[0] for name in names} & OURS


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_from_below(package: str) -> None:
    modules = list(modules_of(package))
    assert modules
    wrong = {
        str(module): more for module in modules if (more := imported(module) - MAY_IMPORT[package])
    }
    assert wrong == {}


def arrows(*packages: str) -> dict[str, set[str]]:
    """Each module with the modules of ours that it imports, wherever in it that stands."""
    known = {".".join(module.with_suffix("").parts) for module in modules_of(*packages)}
    known |= {name.removesuffix(".__init__") for name in known}
    found: dict[str, set[str]] = {}
    for module in modules_of(*packages):
        name = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
        named = {
            f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in known else node.module
            for node in ast.walk(parsed(module))
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for alias in node.names
        }
        found[name] = (named & known) - {name}
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(arrows("benchmarks", "leaderboard", "evaluator")).prepare()


def test_no_folders_of_benchmarks_import_each_other_in_a_circle() -> None:
    """Folders of the other packages follow as they are cleaned."""
    folders: dict[str, set[str]] = {}
    for module, imports in arrows("benchmarks").items():
        folder = ".".join(module.split(".")[:2])
        others = {".".join(one.split(".")[:2]) for one in imports}
        folders.setdefault(folder, set()).update(others - {folder, "benchmarks"})
    folders.pop("benchmarks")
    TopologicalSorter(folders).prepare()


# The publisher writes the front page as a file, for whoever comes before the site has started.
MAY_KNOW_PAGES = {"leaderboard/publication/publisher.py"}


def test_pages_of_the_site_are_not_imported_by_what_is_below_them() -> None:
    """Whoever ranks, stores or governs without the site starts without it."""
    below = {"publication", "ranking", "reevaluation", "store", "ledger", "governance"}
    found = {
        str(module)
        for module in modules_of("leaderboard")
        if module.parts[1] in below
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leaderboard.pages")
    }
    assert found == MAY_KNOW_PAGES


def test_an_import_is_seen_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import numpy, leaderboard.store\nfrom .tests import a\n"
        "def f():\n    import importlib\n    importlib.import_module('evaluator.worker')\n"
    )
    assert imported(module) == {"leaderboard", "evaluator"}
