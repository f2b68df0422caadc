"""Buttons that copy from a page, and the address of the site as visitors see it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HOST = re.compile(r"[A-Za-z0-9.-]{1,200}(?::[0-9]{1,5})?")

COPY_AND_GO = """() => {
  if (window.asCopies) return;
  window.asCopies = true;
  document.addEventListener('click', async (event) => {
    const place = event.target.closest?.('[data-place]');
    if (place) {
      event.preventDefault();
      const part = document.getElementById(place.dataset.place);
      part?.scrollIntoView();
      part?.setAttribute('tabindex', '-1');
      part?.focus({ preventScroll: true });
      return;
    }
    const button = event.target.closest?.('[data-copy]');
    const content = button?.parentElement.querySelector('pre')?.textContent;
    if (!content) return;
    try {
      await navigator.clipboard.writeText(content);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector('pre'));
    }
  });
}"""
"""Copies what stands beside a button, or marks it where the browser does not let us; and goes to a
part of the page, since a fragment would lead to the root of the site."""


def root_of(headers: Mapping[str, str]) -> str:
    """Address of the site by the headers of a request; empty where they do not say it plainly."""
    host = headers.get("x-forwarded-host") or headers.get("host", "")
    scheme = headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    if scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        return ""
    return f"{scheme}://{host}/"
