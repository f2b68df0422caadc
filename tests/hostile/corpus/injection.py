"""Text that would do something where it is shown: in a browser, a terminal, a spreadsheet."""

from __future__ import annotations

from tests.hostile.case import PUBLISHED, Case, Category, failed
from tests.hostile.corpus.texts import scoring

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>"
ANSI = "\x1b[2J\x1b[31mred\x1b]8;;https://example.org\x07click\x1b]8;;\x07\x1b]0;title\x07\x07"
BIDI = "abc\u202etxt.exe\u2066 \u200b\u2028next\u0085"
FORMULA = '=HYPERLINK("https://example.org","x")'
MARKUP = "[link=https://example.org]click[/link] [red] [/no such tag] [blink]"
TEMPLATE = "{{ 7 * 7 }} ${7*7} {% raw %} %s %n {0.__class__}"
ATTRIBUTE = "x' onmouseover='alert(1)' y="
LINES = "first\r\nsecond\rthird\n1999-01-01 00:00:00 published by operator"

ALL = {
    "HTML": HTML,
    "terminal sequences": ANSI,
    "turned-round text": BIDI,
    "a formula": FORMULA,
    "terminal markup": MARKUP,
    "a template": TEMPLATE,
    "lines of its own": LINES,
}

UNSEEN = ("terminal sequences", "turned-round text")
"""Kinds of text that no manifest may hold."""


def _toml(text: str) -> str:
    """A string of TOML that holds exactly this."""
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) > 126 or c in '"\\' else c for c in text
    )
    return f'"{escaped}"'


def _raising(what: str, text: str) -> Case:
    return Case(
        f"{what} in an error",
        Category.INJECTION,
        scoring(f"raise ValueError({text!r})"),
        failed("scorer_raised", says="ValueError"),
    )


def _of_good_will(name: str, *, making: str = "pass", manifest: str = "") -> Case:
    """A scorer that does no more than to say something."""
    return Case(
        name,
        Category.INJECTION,
        scoring(making=making),
        PUBLISHED,
        manifest=manifest,
        scores=(0.0, 1.0, 2.0),
    )


SHOWN = tuple(text for what, text in ALL.items() if what not in UNSEEN)


CASES = (
    *(_raising(what, text) for what, text in ALL.items()),
    _of_good_will(
        "every such text in the log",
        making=f"sys.stdout.reconfigure(errors='replace')\nprint(*{tuple(ALL.values())!r}, sep='\\n')",
    ),
    *(
        _of_good_will(
            f"{where} of every such text", manifest="".join(f"{line}\n" for line in lines)
        )
        for where, lines in {
            "a description": [f"description = {_toml(' '.join(SHOWN))}"],
            "authors": [f"authors = [{', '.join(map(_toml, SHOWN))}]"],
            "a licence": [f"licence = {_toml(' '.join(SHOWN)[:200])}"],
            "links": ["[links]", *(f"{_toml(t)} = {_toml('https://example.org/')}" for t in SHOWN)],
        }.items()
    ),
    Case(
        "HTML as the name of an error's class",
        Category.INJECTION,
        scoring(f"raise type({HTML!r}, (Exception,), {{}})('x')"),
        failed("scorer_raised"),
    ),
    Case(
        "an attribute in the name of the file that raises",
        Category.INJECTION,
        scoring(f"import importlib; importlib.import_module({ATTRIBUTE!r})"),
        failed("scorer_raised", says="onmouseover"),
        files={f"{ATTRIBUTE}.py": "raise ValueError('here')"},
    ),
    _of_good_will(
        "a log that is all control characters",
        making="os.write(1, bytes(range(256)) * 8 + b'\\x9b31m' + b'\\xc2\\x9b31m')",
    ),
)

BAD_NAMES = {
    "HTML": "<b>name</b>",
    "a formula": "=1+1",
    "turned-round text": "a\u202eb",
    "terminal sequences": "a\x1b[31mb",
    "lines": "a\nb",
    "another script": "cl\u0456p",
    "nothing": "",
}
"""Names of metrics that are not taken: a name stands on every board."""


def manifest_describing(text: str) -> str:
    """A manifest that says this of its metric, and has a link and a key of that name."""
    said = _toml(text)
    return f'name = "odd"\ndescription = {said}\n{said} = 1\n[links]\n{said} = "https://a.org"'


BAD_LINKS = {
    "a script": "javascript:alert(1)",
    "a page in the link itself": "data:text/html,<script>alert(1)</script>",
    "a quotation mark": 'https://example.org/"onmouseover="alert(1)',
    "HTML": "https://example.org/<script>",
    "lines": "https://example.org/a\nb",
}
"""Addresses that are not taken: a link stands on the page of its metric."""


def manifest_linking(address: str) -> str:
    """A manifest with this link."""
    return f'name = "linked"\n[links]\npaper = {_toml(address)}'


def manifest_named(name: str) -> str:
    """A manifest that gives the metric this name."""
    return f"name = {_toml(name)}"
