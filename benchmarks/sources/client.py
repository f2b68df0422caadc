"""The parts of the Hub's HTTP client that the project is built on, named once.

`httpx` is whichever library the installed client uses, so that its errors can be caught by name.
"""

from __future__ import annotations

from functools import lru_cache

from huggingface_hub import set_client_factory
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # exported, but lazily
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    parse_ratelimit_headers,
)
from huggingface_hub.utils._http import hf_request_event_hook  # the hook its documentation names

from benchmarks.sources.origins import refuse_to_be_led_astray

__all__ = [
    "TIMEOUT",
    "build_hf_headers",
    "get_session",
    "hf_raise_for_status",
    "hf_request_event_hook",
    "httpx",
    "limit_waiting",
    "parse_ratelimit_headers",
]

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_COMMIT_READ_S = 75.0
"""The Hub gives itself a minute for a commit; who waits less does not learn how it ended."""


@lru_cache(maxsize=1)
def limit_waiting() -> None:
    """Give the client's own calls a timeout, which they lack, and keep its token where it belongs.

    Without the first a silent Hub would hang them.
    """
    set_client_factory(
        lambda: httpx.Client(
            event_hooks={
                "request": [hf_request_event_hook, _wait_for_commits],
                "response": [refuse_to_be_led_astray],
            },
            follow_redirects=True,
            timeout=TIMEOUT,
        )
    )


def _wait_for_commits(request: httpx.Request) -> None:
    if request.method == "POST" and "/commit/" in request.url.path:
        request.extensions["timeout"] = {**TIMEOUT.as_dict(), "read": _COMMIT_READ_S}
