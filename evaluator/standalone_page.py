"""HTML pages of commands: escaped, from the templates of a package."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leaderboard.rendering import escaped
from leaderboard.text import interval, number


def render_page(package: str, template: str, **values: object) -> str:
    """A page from a template of a package's folder `templates`.

    What stands in it is cleaned of control and direction characters and escaped.
    """
    return _environment(package).get_template(template).render(**values)


@cache
def _environment(package: str) -> Environment:
    made = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else escaped(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "interval": interval}
    return made
