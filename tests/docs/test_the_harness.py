"""The harness itself: what it would not notice, no document would be safe from."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from tests.docs.command_names import Named, named_in, problem
from tests.docs.markdown_text import REPOSITORY, Document
from tests.docs.shell import Ran, run, script_of

PATIENCE_S = 60.0


def document(folder: Path, text: str) -> Document:
    path = folder / "document.md"
    path.write_text(text, encoding="utf-8")
    return Document(path)


def ran(folder: Path, text: str, timeout_s: float = PATIENCE_S) -> Ran:
    place = folder / "place"
    place.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return run(script_of(document(folder, text)), place, environment, timeout_s)


def block(*commands: str, comment: str = "") -> str:
    body = "\n".join(commands)
    return f"Words.\n\n{comment}\n```sh\n{body}\n```\n\n"


def test_variables_and_folders_persist_between_blocks(tmp_path: Path) -> None:
    text = block("mkdir below", "cd below", "NAME=ada") + block(
        'test "$NAME" = ada', "test -d ../below"
    )
    assert ran(tmp_path, text).code == 0


def test_a_failing_command_is_named_with_its_line_and_what_it_printed(tmp_path: Path) -> None:
    text = block("true") + block("echo before", "ls nowhere-at-all", "echo after")
    found = ran(tmp_path, text)
    assert found.code != 0
    line = text.splitlines().index("ls nowhere-at-all") + 1
    assert f"!!! line {line}: exit code 2: ls nowhere-at-all" in found.output
    assert "before" in found.output
    assert "after" not in found.output


@pytest.mark.parametrize(
    "commands",
    [
        ("false | true",),
        ('echo "$NOT_SET_ANYWHERE"',),
        ("f() { false; }", "f"),
        ("cat > file <<'EOF'", "no end"),
        ("if true; then",),
    ],
)
def test_no_failure_is_swallowed(commands: tuple[str, ...], tmp_path: Path) -> None:
    assert ran(tmp_path, block(*commands)).code != 0


@pytest.mark.parametrize(
    ("commands", "code", "works"),
    [
        (("true", "exit_with() { return 3; }", "exit_with"), 3, True),
        (("ls nowhere-at-all",), 2, True),
        (("true",), 1, False),
        (("ls nowhere-at-all",), 1, False),
        (("false", "ls nowhere-at-all"), 2, False),
    ],
)
def test_an_expected_exit_code_is_that_of_the_last_command(
    commands: tuple[str, ...], code: int, works: bool, tmp_path: Path
) -> None:
    text = block(*commands, comment=f"<!-- exits: {code} -->") + block("true")
    assert (ran(tmp_path, text).code == 0) is works


def test_after_an_expected_failure_the_next_one_is_noticed(tmp_path: Path) -> None:
    text = block("false", comment="<!-- exits: 1 -->") + block("false", "true")
    assert ran(tmp_path, text).code != 0


def test_what_comes_before_a_block_is_run_and_what_a_test_runs_is_not(tmp_path: Path) -> None:
    text = block("test -f made", comment="<!-- before: touch made -->")
    text += block("rm made", comment="<!-- by: tests/x.py::test_x -->") + block("test -f made")
    assert ran(tmp_path, text).code == 0


def test_a_server_is_waited_for_and_ended(tmp_path: Path) -> None:
    serving = f"exec {sys.executable} -m http.server 8643 --bind 127.0.0.1"
    text = block(serving, comment="<!-- until: http://127.0.0.1:8643/ -->")
    text += block("curl --silent --fail --output listing http://127.0.0.1:8643/")
    assert ran(tmp_path, text).code == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 8643), timeout=5)


def test_a_server_that_ends_at_once_fails(tmp_path: Path) -> None:
    text = block("false", comment="<!-- until: http://127.0.0.1:8644/ -->")
    assert "ended before" in ran(tmp_path, text).output


def test_a_document_that_hangs_is_ended(tmp_path: Path) -> None:
    found = ran(tmp_path, block("sleep 1000"), timeout_s=1.0)
    assert found.code == 124
    assert "not finished" in found.output


def test_blocks_in_lists_lose_their_indentation(tmp_path: Path) -> None:
    text = "1. First:\n\n   ```sh\n   cat > here <<'EOF'\n   text\n   EOF\n   ```\n\n"
    assert ran(tmp_path, text + block('test "$(cat here)" = text')).code == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("python -m evaluator check my-metric --pairs 20", ""),
        ("python -m evaluator store create hub:a/b", ""),
        ("python -m evaluator hide|show ID", ""),
        ("python -m evaluator chekc my-metric", "no command 'chekc'"),
        ("python -m evaluator check . --piars 20", "--piars"),
        ("python -m evaluator store page --too .", "--too"),
        ("python -m benchmarks.no_such", "no module"),
        ("python -m benchmarks.errata --no-such", "--no-such"),
    ],
)
def test_commands_and_options_that_do_not_exist_are_found(code: str, said: str) -> None:
    [named] = named_in(code)
    assert isinstance(named, Named)
    assert problem(named) == said or (said and said in problem(named))


def test_headings_links_and_comments_are_read_as_github_reads_them(tmp_path: Path) -> None:
    text = (
        "<!-- with: tree hub -->\n# One: `two`, three\n\n## Same\n\n## Same\n\n[to](a.md#b) "
        '![x](y.svg)\n\n<picture><source srcset="dark.svg"><img src="light.svg"></picture>\n'
    )
    read = document(tmp_path, text)
    assert read.needs == {"tree", "hub"}
    assert read.anchors == {"one-two-three", "same", "same-1"}
    targets = [target for _, target in read.links()]
    assert sorted(targets) == ["a.md#b", "dark.svg", "light.svg", "y.svg"]


def test_metadata_at_the_top_is_no_text_and_moves_no_line() -> None:
    read = Document(REPOSITORY / "README.md")
    raw = (REPOSITORY / "README.md").read_text("utf-8")
    assert len(read.text.splitlines()) == len(raw.splitlines())
    assert not read.text.lstrip().startswith("---")
