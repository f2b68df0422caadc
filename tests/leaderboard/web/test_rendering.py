"""The templates' environment: what untrusted users wrote stays text, and nothing is printed unsaid."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound, UndefinedError
from markupsafe import Markup

from leaderboard.rendering import environment, render
from tests.conftest import REPOSITORY
from tests.leaderboard.web.parsed import harmless, read

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'`\u202eabc\u2066\x00\x1b{{7*7}}{%x%}${y}&amp;"
SEEN = "<script>alert(1)</script>\"'`abc{{7*7}}{%x%}${y}&amp;"
TEMPLATES = Path(REPOSITORY, "leaderboard/web/templates")


def printed(source: str, **values: object) -> str:
    return environment().from_string(source).render(**values)


@pytest.mark.parametrize(
    "source",
    [
        "<p title=\"{{ x }}\" class='{{ x }}'>{{ x }}</p>",
        '<p title="{{ x|e }}">{{ x|escape }}</p>',
        '<p title="a">{{ "<b>"|replace("<b>", "") ~ x }}</p>',
        "<p title=''>{% set y %}<i>{{ x }}</i>{% endset %}{{ y ~ x }}</p>",
        "<p title=''>{{ [x, x]|join(', ') }}{{ x|submitted(200) }}{{ x|lines }}{{ x|limited(99) }}</p>",
        "<p title=''>{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ x }}{% endcall %}</p>",
    ],
)
def test_whatever_was_submitted_is_text_wherever_it_is_printed(source: str) -> None:
    made = printed(source, x=HOSTILE)
    harmless(made)
    assert "{" not in made and "}" not in made and SEEN in read(made).text
    (paragraph,) = read(made).all("p")
    assert set(paragraph.attrs) <= {"title", "class"}  # No quotation mark ended one early.


def test_markup_that_is_given_stays_markup_and_is_cleaned_all_the_same() -> None:
    made = printed("{{ x }}", x=Markup("<b>a\u202eb\x1b{{c}}</b>"))
    assert read(made).one("b").text == "ab{{c}}" and "{" not in made and "\u202e" not in made


def test_what_was_not_given_or_is_none_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        printed("{{ nothing }}")
    with pytest.raises(UndefinedError):
        printed("{% if x.nothing %}{% endif %}", x=object())
    with pytest.raises(TypeError):
        printed("{{ x }}", x=None)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ -0.5|number }} {{ none|number }} {{ nan|number }} {{ 3.14159|number(2) }}",
         "−0.500 — — 3.14"),
        ("{{ -0.1|interval(0.25) }}|{{ none|interval(1) }}", "[−0.100, 0.250]|"),
        ("{{ 1|count('metric') }} {{ 1200|count('entry', 'entries') }}", "1 metric 1,200 entries"),
        ("{{ 40|duration }} {{ 7500|duration }}", "40 s 2 h 05 min"),
        ("{{ 3.42|rate }} {{ 2684|rate }} {{ 12345|integer }}", "3.4 2,684 12,345"),
        ("{{ 0.95|percent }} {{ -0.123|percent(1) }} {{ none|percent }}", "95% −12.3% —"),
        ("{{ at|ago(now) }}", "3 min ago"),
        ("{{ ('x' * 100)|submitted(10) }}", "xxxxxxxxx…"),
    ],
)  # fmt: skip
def test_figures_are_written_one_way(source: str, shown: str) -> None:
    made = printed(source, at=NOW - timedelta(minutes=3), now=NOW, nan=math.nan)
    assert read(made).text == shown


def test_names_keep_their_direction_to_themselves_and_moments_their_date() -> None:
    made = read(printed("{{ 'אב'|submitted }}{{ at|ago(now) }}", at=NOW, now=NOW))
    assert made.one("bdi").text == "אב" and made.one("time")["datetime"] == NOW.isoformat()


def test_lines_of_a_log_stay_apart() -> None:
    assert printed("{{ x|lines }}", x="a\n<b>\x1b") == "a\n&lt;b&gt;"
    assert printed("{{ x }}", x="a\nb") == "a b"


def test_no_template_turns_escaping_off_or_holds_a_script_or_an_event() -> None:
    found = sorted(TEMPLATES.rglob("*.html"))
    assert found
    for path in found:
        source = path.read_text(encoding="utf-8")
        for words in ("|safe", "| safe", "autoescape", " on{{", "onclick", "|tojson"):
            assert words not in source, (path, words)
        # The frame has the site's own scripts, which hold nothing that is printed.
        scripts = re.findall(r"<script[^>]*>(.*?)</script>", source, re.S)
        allowed = {"", '{% include "shell/theme.js" %}'} if path.parent.name == "shell" else set()
        assert {*scripts} <= allowed and source.count("<script") == len(scripts), path
        environment().get_template(path.relative_to(TEMPLATES).as_posix())  # It can be read.


def test_a_template_that_is_not_there_is_an_error() -> None:
    with pytest.raises(TemplateNotFound):
        render("nothing.html")
