"""What a visitor finds on a page: its words, names, links, tables and roles, whatever its markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

_VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
_INLINE = {"a", "b", "i", "em", "strong", "small", "span", "bdi", "code", "sub", "sup", "time"}
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9:-]*")
"""Of the house's templates; what ends an attribute too early makes another one."""
_STEP = re.compile(r"(\w*)((?:[#.][\w-]+)*)((?:\[[^\]]+\])*)$")


class Node:
    """An element of a page, or the page itself."""

    def __init__(self, tag: str = "", attrs: dict[str, str] | None = None) -> None:
        self.tag, self.attrs = tag, attrs or {}
        self.children: list[Node | str] = []

    def __getitem__(self, name: str) -> str:
        return self.attrs.get(name, "")

    def __contains__(self, words: str) -> bool:
        return words in self.told

    @property
    def text(self) -> str:
        """Its words as they are read, with single spaces; those of drawings are left out."""
        return " ".join("".join(self._words()).split())

    @property
    def told(self) -> str:
        """Its words with those that come on hover or are for who cannot see."""
        named = (
            one[name] for one in (self, *self.nodes) for name in ("title", "aria-label", "alt")
        )
        drawn = (one.text for svg in self.all("svg") for one in svg.nodes)
        return " ".join([self.text, *filter(None, named), *filter(None, drawn)])

    def _words(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif child.tag not in {"style", "script", "svg"}:
                between = "" if child.tag in _INLINE else " "
                yield from (between, *child._words(), between)

    @property
    def nodes(self) -> Iterator[Node]:
        """All elements in it, in their order."""
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child.nodes

    def all(self, path: str) -> list[Node]:
        """Elements by a path of `tag#id.class[attribute=start]`, with spaces between ancestors."""
        first, _, rest = re.sub(r" (?![^\[]*\])", "\n", path, count=1).partition("\n")
        found = [node for node in self.nodes if node.fits(first)]
        if not rest:
            return found
        return list({id(one): one for node in found for one in node.all(rest)}.values())

    def fits(self, step: str) -> bool:
        match = _STEP.match(step)
        assert match is not None, step
        tag, marks, asked = match.groups()
        classes = self["class"].split()
        return (
            tag in {"", self.tag}
            and all(
                mark[1:] in classes if mark[0] == "." else mark[1:] == self["id"]
                for mark in re.findall(r"[#.][\w-]+", marks)
            )
            and all(
                name in self.attrs and self[name].startswith(start)
                for name, _, start in (
                    one.partition("=") for one in re.findall(r"\[(.+?)\]", asked)
                )
            )
        )

    def one(self, path: str) -> Node:
        found = self.all(path)
        assert found, f"there is no {path}"
        return found[0]

    def texts(self, path: str) -> list[str]:
        return [node.text for node in self.all(path)]

    def links(self, start: str = "", path: str = "a") -> list[str]:
        """Where its links lead, if there they begin like this."""
        found = [node["href"] for node in self.all(path) if "href" in node.attrs]
        return [one for one in found if one.startswith(start)]

    @property
    def names(self) -> list[str]:
        """Names of metrics or models in their order."""
        return self.texts(".as-name bdi")

    @property
    def groups(self) -> dict[str, list[str]]:
        """Label of each group of rows, as of a tier, to the names in it."""
        found: dict[str, list[str]] = {}
        label = ""
        for row in self.all("tbody tr"):
            if row.all("th[colspan]") or row.all("td[colspan]"):
                found[label := row.text] = []
            elif label:
                found[label] += (row.names or row.texts("th"))[:1]
        return found

    @property
    def rows(self) -> list[dict[str, Node]]:
        """Rows of its first table: header of each column to the cell below it."""
        table = self if self.tag == "table" else self.one("table")
        heads = [head.text for head in table.one("thead tr").all("th")]
        rows = [[n for n in row.nodes if n.tag in {"th", "td"}] for row in table.all("tbody tr")]
        return [dict(zip(heads, row, strict=True)) for row in rows if len(row) == len(heads)]

    def row(self, name: str) -> Node:
        """The first row of a table that is about somebody."""
        found = [r for r in self.all("tr") if name in (*r.texts("bdi"), *r.texts("th"))]
        assert found, f"no row of {name}"
        return found[0]


class _Reading(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {node.tag for node in self.open[1:]} and tag not in _VOID:
            while self.open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(page: str) -> Node:
    """A page or a part of one."""
    reading = _Reading()
    reading.feed(page)
    reading.close()
    return reading.open[0]


def harmless(*pages: str) -> None:
    """Holds that nothing in them runs or misleads, whatever strangers wrote."""
    for page in pages:
        assert not {"\u202e", "\x1b", "\x00"} & set(page)
        assert "${" not in page and "{{" not in page
        for node in read(page).nodes:
            assert node.tag not in {"script", "iframe", "object"}, node.tag
            assert not [name for name in node.attrs if name.startswith("on")]
            assert all(_ATTRIBUTE.fullmatch(name) for name in node.attrs), node.attrs
            assert not node["href"].strip().lower().startswith("javascript:")
            assert node.tag != "img" or node["src"].startswith("./")


def parse(html: str) -> Node:
    """The page, in which nothing runs or misleads."""
    harmless(html)
    return read(html)


def named(page: Node) -> None:
    """Holds that tables and drawings can be read out: headers have a scope, drawings a name."""
    assert all(head["scope"] for head in page.all("th"))
    drawings = {id(svg): svg for svg in page.all("svg")}
    for inner in page.all("svg svg"):
        drawings.pop(id(inner), None)
    assert all("aria-" in " ".join(svg.attrs) for svg in drawings.values())
