"""The frame around every page: its head, the bar of places, and the document of unknown addresses.

Gradio serves one document for all pages. The frame is put into it on the way out, so that the bar,
the style sheet and the theme are there before Gradio is, and nothing moves when it comes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.rendering import render
from leaderboard.web.assets import assets
from leaderboard.web.page import Page
from leaderboard.web.places import navigation

_BODY = re.compile(rb"<body\b([^>]*)>")
_TITLE_BY_GRADIO = b'control_page_title="true"'


def framed(document: bytes, pages: Sequence[Page], path: str) -> bytes:
    """A document of Gradio's with the frame; as it was where it has no body."""
    start = _BODY.search(document)
    if start is None:
        return document
    style, script = assets()
    top = render(
        "shell/body.html", here=navigation(pages, path), style=style.address, script=script.address
    )
    opened = b'<body class="as-loading"' + start[1] + b">" + top.encode()
    # Its title is that of the view, which Gradio does not know.
    after = document[start.end() :].replace(_TITLE_BY_GRADIO, b'control_page_title="false"', 1)
    return document[: start.start()] + opened + after


def unknown_address(pages: Sequence[Page], path: str) -> str:
    """The document for an address where there is nothing."""
    style, script = assets()
    return render(
        "shell/unknown.html",
        here=navigation(pages, None),
        style=style.address,
        script=script.address,
        base="../" * (path.count("/") - 1) or "./",
        asked=path,
    )
