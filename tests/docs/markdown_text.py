"""The project's documents as GitHub reads them: fences, links, headings and code."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

REPOSITORY = Path(__file__).resolve().parents[2]
SETTINGS = ("with", "by", "exits", "before", "until")
"""What a comment before a fence may say, `with` only at the top of a document."""

_COMMENT = re.compile(r"<!--\s*(\w+):\s*(.*?)\s*-->", re.DOTALL)
_ANCHOR = re.compile(r"""<a\s+(?:id|name)=["']([^"']+)["']""")
_SOURCE = re.compile(r"""<(?:img|source)\b[^>]*?\s(?:src|srcset)=["']([^"']+)["']""")
_SHELL = re.compile(r"^ *```sh$", re.MULTILINE)
_BY = re.compile(r"^ *<!-- by: ", re.MULTILINE)


@dataclass(frozen=True)
class Fence:
    """A block of code: its lines, those of its marks, and what comments before it say and where."""

    language: str
    content: str
    line: int
    end: int
    settings: dict[str, str]
    setting_lines: dict[str, int]


@dataclass(frozen=True)
class Document:
    """One Markdown file of the project."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(REPOSITORY).as_posix()

    @cached_property
    def text(self) -> str:
        """All of it, a block of metadata at its very top blanked out."""
        raw = self.path.read_text("utf-8")
        front = re.match(r"---\n.*?\n---\n", raw, re.DOTALL)
        return raw if front is None else "\n" * front[0].count("\n") + raw[front.end() :]

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(MarkdownIt("commonmark").enable("table").parse(self.text))

    @cached_property
    def fences(self) -> tuple[Fence, ...]:
        return tuple(map(self._fence, (token for token in self.tokens if token.type == "fence")))

    @property
    def has_commands(self) -> bool:
        """Whether there are commands that no other test runs, by a look that parses nothing."""
        return len(_SHELL.findall(self.text)) > len(_BY.findall(self.text))

    @cached_property
    def needs(self) -> frozenset[str]:
        found = re.search(r"<!--\s*with:\s*(.*?)\s*-->", self.text)
        return frozenset(found[1].split()) if found else frozenset()

    def links(self) -> Iterator[tuple[int, str]]:
        """Line and target of every link and image."""
        for line, token in self._inline():
            for child in token.children or ():
                target = child.attrGet("href" if child.type == "link_open" else "src")
                if child.type in {"link_open", "image"} and target is not None:
                    yield line, str(target)
                elif child.type == "html_inline":
                    yield from ((line, found) for found in _SOURCE.findall(child.content))
        for token in self.tokens:
            if token.type == "html_block":
                yield from ((_line(token), found) for found in _SOURCE.findall(token.content))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """What `#...` may name: slugs of the headings as GitHub makes them, and own anchors."""
        seen: Counter[str] = Counter()
        found = set(_ANCHOR.findall(self.text))
        for token, inline in zip(self.tokens, self.tokens[1:], strict=False):
            if token.type == "heading_open":
                slug = _slug(inline)
                found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
                seen[slug] += 1
        return frozenset(found)

    def code(self) -> Iterator[tuple[int, str]]:
        """Line and content of all code, inline and in blocks of any language."""
        for line, token in self._inline():
            for child in token.children or ():
                if child.type == "code_inline":
                    yield line, child.content
        for token in self.tokens:
            if token.type in {"fence", "code_block"}:
                joined = re.sub(r"\\\n\s*", "", token.content)
                yield from ((_line(token), line) for line in joined.splitlines())

    def _inline(self) -> Iterator[tuple[int, Token]]:
        yield from ((_line(token), token) for token in self.tokens if token.type == "inline")

    def _fence(self, token: Token) -> Fence:
        assert token.map is not None
        start, end = token.map
        settings, lines = self._settings_before(start)
        return Fence(token.info.strip(), token.content, start + 1, end, settings, lines)

    def _settings_before(self, start: int) -> tuple[dict[str, str], dict[str, int]]:
        """The comments that end right above a line, blank lines aside."""
        above = "\n".join(self.text.splitlines()[:start])
        settings: dict[str, str] = {}
        lines: dict[str, int] = {}
        while found := re.search(r"<!--(?:(?!-->).)*-->\s*\Z", above, re.DOTALL):
            said = _COMMENT.match(found[0])
            if said is not None and said[1] in SETTINGS:
                settings.setdefault(said[1], said[2])
                lines.setdefault(said[1], above.count("\n", 0, found.start()) + 1)
            above = above[: found.start()]
        return settings, lines


@cache
def every_document() -> tuple[Document, ...]:
    """All Markdown files of the project, those with gaps to fill in (templates) aside."""
    return tuple(
        Document(REPOSITORY / name)
        for name in project_files()
        if name.endswith(".md") and not name.startswith("evaluator/templates/")
    )


@cache
def run_documents() -> tuple[Document, ...]:
    """Those whose commands are run."""
    return tuple(d for d in every_document() if d.name.startswith("docs/") or "/" not in d.name)


@cache
def project_files() -> tuple[str, ...]:
    """Paths of the project's files: what git keeps or would keep."""
    git = shutil.which("git")
    assert git is not None, "git lists the files of the project"
    listed = subprocess.run(
        [git, "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(set(listed.stdout.split("\0")) - {""})
    return tuple(name for name in names if (REPOSITORY / name).is_file())


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _slug(heading: Token) -> str:
    words = "".join(
        child.content for child in heading.children or () if child.type in {"text", "code_inline"}
    )
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
