"""Guides as HTML: the documents of the repository, as far as links lead to them."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from leaderboard.views.addresses import address

ROOT = Path(__file__).parents[2]
INSTALLED = Path(sys.prefix) / "share/doc/assay"
"""Documents outside of packages, where Assay is installed and there is no checkout."""
FIRST = "README"
"""Name of the guide that leads to all others; a site without its documents has none."""
FIGURES = "guide-figures"
_FIGURE_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_DOCS, _SUFFIX = "docs/", ".md"
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_NO_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Guide:
    """A document."""

    name: str  # its path below `docs`, without suffix; others by their path in the repository
    title: str  # its first heading
    lead: str  # the text of its first paragraph
    html: Markup  # all after the first heading; safe, since these files are our own
    sections: tuple[tuple[str, str], ...]  # id and text of its headings of the second level


@cache
def guides(root: Path = ROOT) -> Mapping[str, Guide]:
    """Every document that links lead to from the first one, by name; none where that is missing."""
    found: dict[str, Guide] = {}
    waiting = [_DOCS + FIRST]
    while waiting:
        path = waiting.pop(0)
        file = _place(f"{path}{_SUFFIX}", root)
        if _named(path) in found or not file.is_file():
            continue
        guide, linked = _read(file.read_text("utf-8"), path, root)
        found[guide.name] = guide
        waiting += linked
    return found


def guide_address(name: str, section: str = "") -> str:
    """Where a guide is shown."""
    return f"{address('guide', name=name)}{f'#{section}' if section else ''}"


def figure(name: str, root: Path = ROOT) -> bytes | None:
    """A drawing or screenshot of the guides; None where there is none of that name."""
    known = {file.name: file for file in _place(f"{_DOCS}figures", root).iterdir()}
    return known[name].read_bytes() if name in known and figure_type(name) else None


def figure_type(name: str) -> str:
    """Media type of a figure; empty for what is none."""
    return _FIGURE_TYPES.get(posixpath.splitext(name)[1], "")


def _place(path: str, root: Path) -> Path:
    """Where a document or folder of the repository is."""
    return root / path if (root / path).exists() else INSTALLED / path


def _named(path: str) -> str:
    return path.removeprefix(_DOCS)


def _read(content: str, path: str, root: Path) -> tuple[Guide, list[str]]:
    """A document, and the paths of those it links to."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _block)
    parser.add_render_rule("code_block", _block)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    tokens = parser.parse(_COMMENT.sub("", content))
    linked: list[str] = []
    for token in tokens:
        for one in token.children or ():
            _lead_on(one, path, root, linked)
    titles = [
        (place, tokens[place + 1].content, token.tag)
        for place, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    for place, text, _ in titles:
        tokens[place].attrSet("id", slug(text))
    after = titles[0][0] + 3 if titles and titles[0][2] == "h1" else 0
    paragraphs = (
        tokens[place + 1] for place, one in enumerate(tokens) if one.type == "paragraph_open"
    )
    first = next(paragraphs, None)
    guide = Guide(
        _named(path),
        _plain(titles[0][1]) if after else _named(path),
        "".join(_text(one) for one in first.children or ()) if first else "",
        Markup(parser.renderer.render(tokens[after:], parser.options, {})),  # noqa: S704
        tuple((slug(text), _plain(text)) for _, text, tag in titles if tag == "h2"),
    )
    return guide, linked


def _text(token: Token) -> str:
    """What a token of a paragraph says; the end of a line is a space."""
    return " " if token.type in {"softbreak", "hardbreak"} else token.content


def _lead_on(token: Token, path: str, root: Path, linked: list[str]) -> None:
    """Have a link or an image of a document lead to where the site shows it."""
    attribute = {"link_open": "href", "image": "src"}.get(token.type)
    if attribute is None:
        return
    parts = urlsplit(str(token.attrs[attribute]))
    if parts.scheme:
        return
    beside = posixpath.join(posixpath.dirname(path), parts.path)
    to = posixpath.normpath(beside) if parts.path else f"{path}{_SUFFIX}"
    if token.type == "image":
        token.attrs["src"] = f"./{FIGURES}/{posixpath.basename(to)}"
    elif to.endswith(_SUFFIX) and not to.startswith("..") and _place(to, root).is_file():
        token.attrs["href"] = guide_address(_named(to.removesuffix(_SUFFIX)), parts.fragment)
        linked.append(to.removesuffix(_SUFFIX))
    else:
        token.attrs["href"] = guide_address(FIRST)


def slug(heading: str) -> str:
    """The anchor of a heading, as hosts of repositories make it."""
    return _NO_SLUG.sub("", _plain(heading).lower()).replace(" ", "-")


def _plain(heading: str) -> str:
    return heading.replace("`", "").replace("*", "")


def _block(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[place].content))


def _table_open(renderer: Any, tokens: Sequence[Token], place: int, *more: Any) -> str:
    """A table that is too wide scrolls by itself, also by keyboard."""
    tokens[place].attrSet("class", "as-t")
    box = '<figure class="as-scroll" tabindex="0" role="region" aria-label="Table">'
    return f"{box}{renderer.renderToken(tokens, place, *more)}"


def _table_close(renderer: Any, tokens: Sequence[Token], place: int, *more: Any) -> str:
    return f"{renderer.renderToken(tokens, place, *more)}</figure>\n"
