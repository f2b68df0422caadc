"""The house: arrows point one way, modules are short, quiet and finished, what others use is listed.

benchmarks <- leaderboard <- evaluator <- app; nothing needs a tool.
"""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import LOADED, REPOSITORY
from tests.house.modules import PACKAGES, functions_around, modules_of, parsed, source
from tests.house.public_api import COMMAND, FILE, PUBLIC, listing, undocumented

DELIVERED = ("benchmarks", "leaderboard", "evaluator")
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
    TopologicalSorter(arrows(*DELIVERED)).prepare()


@pytest.mark.parametrize("package", DELIVERED)
def test_no_folders_import_each_other_in_a_circle(package: str) -> None:
    folders: dict[str, set[str]] = {}
    for module, imports in arrows(package).items():
        folder = ".".join(module.split(".")[:2])
        others = {".".join(one.split(".")[:2]) for one in imports}
        folders.setdefault(folder, set()).update(others - {folder, package})
    folders.pop(package, None)
    TopologicalSorter(folders).prepare()


ROOMS = (
    {"store"},
    {"ledger"},
    {"ranking"},
    {"publication", "governance"},
    {"models"},
    {"votes"},
    {"views"},
    {"exports"},
    {"service"},
    {"api"},
    {"web"},
)
"""Rooms of `leaderboard` from the lowest; none knows of one above it."""


def test_no_room_knows_of_those_above_it() -> None:
    level = {room: place for place, rooms in enumerate(ROOMS) for room in rooms}
    upward = {
        f"{module}: {node.module}"
        for module in modules_of("leaderboard")
        if len(module.parts) > 2
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("leaderboard.")
        and level.get(str(node.module).split(".")[1], -1) > level[module.parts[1]]
    }
    assert upward == set()


def test_views_are_plain_objects() -> None:
    """The read model writes no HTML and knows no user interface."""
    found = {
        str(module)
        for module in modules_of("leaderboard/views", "leaderboard/api")
        if re.search(r"^\s*(import|from) (gradio|jinja2|markupsafe)\b", source(module), re.M)
    }
    assert found == set()


# How modules are kept.

MOST_LINES = 800
PRINTING = {
    "tools/calibration/__main__.py": "a program: its table is what it is for",
    "evaluator/scorers/models/convert.py": "a program, run by hand",
    "evaluator/scorers/models/region_captions.py": "a program, run by hand",
}
CATCHING = {
    ("benchmarks/command_line.py", "_run"): "the last resort of a command: shown, and exit code 3",
    ("evaluator/commands/generate.py", "_grid"): "a pipeline's own; told, and other models go on",
    ("evaluator/isolation/bubblewrap.py", "Starter._run"): "raised where it was asked for",
    ("evaluator/isolation/inside/calls.py", "_one_line"): "a stranger's __str__",
    ("evaluator/metric_service.py", "ScoringQueue._answer"): "raised where the request is answered",
    ("evaluator/scorers/in_process.py", "*"): "a stranger's model; the pair gets the error",
    ("evaluator/scoring/engine.py", "header_size"): "damaged bytes; whoever decodes them says so",
    (
        "evaluator/worker/liveness.py",
        "*",
    ): "logged; a thread that ends would lose its worker's claims",
    ("evaluator/worker/publishing.py", "*"): "logged; it ends the submission at fault alone",
    ("evaluator/worker/worker.py", "*"): "logged; one bad round is no end of a worker",
    ("leaderboard/service/polling.py", "_fulfil"): "raised by whoever waits for the answer",
    ("leaderboard/store/grouping.py", "*"): "raised by the threads whose change it was",
    ("leaderboard/store/live/relay.py", "*"): "logged; a thread that ends would look like a crash",
    ("leaderboard/votes/committing.py", "*"): "logged; the next commit is tried",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
NO_MIRROR = {
    "docs": "of the documents", "end_to_end": "of commands and pages together",
    "endurance": "of what happens when things die", "hostile": "of submissions that mean harm",
    "house": "of the project itself", "kit": "of what tests share",
    "leaderboard/golden": "records and stores of earlier versions",
    "leaderboard/web/golden": "a page as it was", "deploy": "of what is deployed",
    "leaderboard/web/browser": "of all pages in a browser",
}  # fmt: skip


def test_no_module_is_long() -> None:
    long = {
        str(module): n
        for module in modules_of(*PACKAGES, "app")
        if (n := source(module).count("\n")) > MOST_LINES
    }
    assert long == {}, f"of more than {MOST_LINES} lines"


def test_what_a_library_has_to_say_it_does_not_print() -> None:
    found = {
        str(module)
        for module in modules_of(*PACKAGES, "app")
        if module.parts[0] != "supply"
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    }
    assert found == PRINTING.keys()


def test_any_error_at_all_is_caught_only_where_that_has_a_reason() -> None:
    """A handler that raises again, or that catches by name, is no concern of this list."""
    found = set()
    for module in modules_of(*PACKAGES, "app"):
        for name, node in functions_around(module, ast.ExceptHandler):
            assert isinstance(node, ast.ExceptHandler)
            caught = [getattr(n, "id", "") for n in ast.walk(node.type)] if node.type else ["all"]
            raises = any(isinstance(n, ast.Raise) for n in ast.walk(node))
            if {"all", "Exception", "BaseException"} & set(caught) and not raises:
                wide = (str(module), "*") in CATCHING
                found.add((str(module), "*" if wide else name))
    assert found == CATCHING.keys()


def test_nothing_is_left_for_later() -> None:
    folders = (*PACKAGES, "app", "deploy", "benchmarks_perf", "tests")
    here = Path(__file__).resolve().relative_to(REPOSITORY)
    left = [
        f"{module}:{number}"
        for module in modules_of(*folders)
        if module != here
        for number, line in enumerate(source(module).splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert left == []


def test_the_readme_names_the_folders_that_there_are() -> None:
    rows = re.findall(r"^\| `(\w+)/` \| (.*) \|$", (REPOSITORY / "README.md").read_text(), re.M)
    told = {room: set(re.findall(r"`(\w+)/`", text)) for room, text in rows}
    for room, folders in told.items():
        assert [name for name in sorted(folders) if not (REPOSITORY / room / name).is_dir()] == []
    for room in ("leaderboard", "evaluator"):
        there = {path.parent.name for path in (REPOSITORY / room).glob("*/__init__.py")}
        assert there - {"__pycache__"} == told[room]


def test_tests_lie_where_the_package_lies_that_they_are_of() -> None:
    tests = REPOSITORY / "tests"
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")} - {Path()}
    lost = sorted(
        str(folder)
        for folder in folders
        if not (REPOSITORY / folder).is_dir()
        and not (REPOSITORY / folder.with_suffix(".py")).is_file()
        and not any(folder.is_relative_to(one) for one in NO_MIRROR)
    )
    assert lost == [], "name the folder of tests as the package, or say in NO_MIRROR what it is"


def test_no_folder_of_tests_is_a_package() -> None:
    """Two test files of one name would be taken for one another."""
    packages = {file.parent for file in (REPOSITORY / "tests").rglob("__init__.py")}
    assert [one for one in packages if list(one.glob("test_*.py"))] == []


# What others build on changes only on purpose, and every part of it is explained.


def test_the_public_names_are_those_that_are_written_down() -> None:
    kept, found = FILE.read_text(encoding="utf-8"), listing()
    changes = "\n".join(
        difflib.unified_diff(kept.splitlines(), found.splitlines(), "kept", "found", "", "", 0, "")
    )
    assert kept == found, (
        "What others build on has changed. If that is meant, say so in CHANGELOG.md and run\n"
        f"  {COMMAND}\n{changes}"
    )


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_part_has_a_docstring(name: str) -> None:
    assert list(undocumented(parsed(Path(name)))) == []


# Collecting is quick: what takes seconds to import is imported by the test that uses it.

MOST_MODULES_OF_A_SUBMISSION = 125
"""Those of its isolation and its program, environment, outputs, scoring, comparisons, controls, generators, statistics, protocols, ratings."""
HEAVY = {"diffusers", "open_clip", "ray", "torch", "torchvision", "transformers"}


def test_collecting_tests_imports_no_library_of_models(request: pytest.FixtureRequest) -> None:
    """Of those that this run has collected: `make test` and `make more` collect all."""
    loaded = request.config.stash[LOADED]
    assert {"tests", "pytest"} <= loaded
    assert not HEAVY & loaded


@pytest.mark.slow
def test_a_submission_enters_few_modules_from_archive_to_board() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.house.submission_path"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    entered = [line.split()[0] for line in ran.stdout.splitlines()]
    assert {"evaluator/submission/service.py", "leaderboard/publication/publisher.py"} <= {*entered}
    assert len(entered) <= MOST_MODULES_OF_A_SUBMISSION
