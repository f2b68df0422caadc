"""Sources of scorers, from the few lines in which hostile ones differ from ordinary ones."""

from __future__ import annotations

import textwrap

_IMPORTS = "import ctypes, gc, math, mmap, os, signal, socket, struct, sys, threading, time"
_HONEST = "return [float(image.getpixel((0, 0))[0]) for image in images]"


def scoring(score: str = _HONEST, *, first: str = "", making: str = "pass") -> str:
    """A scorer with this body of `score`.

    Args:
        score: lines of the method; by default it gives the brightness of each picture.
        first: lines of the module, before the class.
        making: lines of the constructor.
    """
    return (
        f"{_IMPORTS}\n{textwrap.dedent(first)}\nclass Scorer:\n"
        f"    def __init__(self):\n{_block(making)}\n"
        f"    def score(self, images, prompts):\n{_block(score)}\n"
    )


def behaving_after(lines: str) -> str:
    """A scorer that does this once, when it is made, and behaves from then on."""
    return scoring(making=lines)


def honest(offset: float) -> str:
    """A scorer of good will whose scores nobody else gives."""
    return scoring(f"return [image.getpixel((0, 0))[0] * 2.0 + {offset!r} for image in images]")


def _block(lines: str) -> str:
    return textwrap.indent(textwrap.dedent(lines).strip(), " " * 8)
