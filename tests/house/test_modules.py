"""How modules are kept: of a size one can read, quiet, finished, and tested where one looks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.house.modules import PACKAGES, functions_around, modules_of, source

MOST_LINES = 800
PRINTING = {
    "tools/calibration/__main__.py": "a program: its table is what it is for",
    "evaluator/scorers/models/convert.py": "a program, run by hand",
    "evaluator/scorers/models/region_captions.py": "a program, run by hand",
}
CATCHING = {
    ("benchmarks/command_line.py", "_run"): "the last resort of a command: shown, and exit code 3",
    ("evaluator/isolation/bubblewrap/starter.py", "Starter._run"): "raised where it was asked for",
    ("evaluator/isolation/inside/reporting.py", "_one_line"): "a stranger's __str__",
    ("evaluator/scoring/in_process/asker.py", "*"): "a stranger's model; the pair gets the error",
    ("evaluator/scoring/in_process/elements.py", "*"): "likewise",
    ("evaluator/scoring/reading.py", "header_size"): "damaged bytes; whoever decodes them says so",
    ("evaluator/worker/ending/outgoing.py", "*"): "logged; it ends the submission at fault alone",
    ("evaluator/worker/rounds.py", "*"): "logged; one bad round is no end of a worker",
    ("leaderboard/service/looking.py", "_fulfil"): "raised by whoever waits for the answer",
    ("leaderboard/store/grouping.py", "*"): "raised by the threads whose change it was",
    ("leaderboard/store/live/relay.py", "*"): "logged; a thread that ends would look like a crash",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
NO_MIRROR = {
    "docs": "of the documents",
    "end_to_end": "of commands and pages together",
    "endurance": "of what happens when things die",
    "hostile": "of submissions that mean harm",
    "house": "of the project itself",
    "hub": "a Hub for tests",
    "leaderboard/golden": "records and stores of earlier versions",
    "leaderboard/pages/metric/golden": "a page as it was",
    "deploy": "of what is deployed",
}


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
        if str(module).startswith("supply/") is False
        for _, node in functions_around(module, ast.Call)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert found == PRINTING.keys()


def test_any_error_at_all_is_caught_only_where_that_has_a_reason() -> None:
    """A handler that raises again, or that catches by name, is no concern of this list."""
    found = set()
    for module in modules_of(*PACKAGES, "app"):
        for name, node in functions_around(module, ast.ExceptHandler):
            assert isinstance(node, ast.ExceptHandler)
            if _catches_all(node) and not any(isinstance(n, ast.Raise) for n in ast.walk(node)):
                wide = (str(module), "*") in CATCHING
                found.add((str(module), "*" if wide else name))
    assert found == CATCHING.keys()


def _catches_all(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    names = [n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)]
    return bool({"Exception", "BaseException"} & set(names))


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
