"""The parts of the Hub's HTTP client that downloads are built on, named once.

`httpx` is whichever library the installed client uses, so that its errors can be caught by name.
"""

from huggingface_hub.utils import (  # type: ignore[attr-defined]  # exported, but lazily
    build_hf_headers,
    get_session,
    hf_raise_for_status,
    httpx,
    parse_ratelimit_headers,
)
from huggingface_hub.utils._http import hf_request_event_hook  # the hook its documentation names

__all__ = [
    "build_hf_headers",
    "get_session",
    "hf_raise_for_status",
    "hf_request_event_hook",
    "httpx",
    "parse_ratelimit_headers",
]
