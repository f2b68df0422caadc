"""Drawing of marks, lines and words as SVG, legible in light and dark and on a phone.

A figure has its own ground, so that it can be read on any page; its colours follow the reader's
preference. Everything is placed in the units of its width, 480, which is about a phone's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH = 480
_STYLE = """
.ground{fill:#fbfcfd}text{fill:#1b2530;font:14px system-ui,-apple-system,"Segoe UI",sans-serif}
.muted{fill:#5b6978}.strong{font-weight:600}.line{stroke:#97a4b1}.faint{stroke:#dfe5ea}
.one{fill:#1f5fa8;stroke:#1f5fa8}.two{fill:#b4530a;stroke:#b4530a}.three{fill:#0f766e;stroke:#0f766e}
.grey{fill:#97a4b1;stroke:#97a4b1}.band{fill:#e4eef9}
@media (prefers-color-scheme:dark){.ground{fill:#0e1318}text{fill:#e4eaf0}.muted{fill:#9aa8b6}
.line{stroke:#5c6b7a}.faint{stroke:#28323d}.one{fill:#7db4f0;stroke:#7db4f0}
.two{fill:#f0a35e;stroke:#f0a35e}.three{fill:#4fc3b5;stroke:#4fc3b5}
.grey{fill:#5c6b7a;stroke:#5c6b7a}.band{fill:#14283e}}
text.one,text.two,text.three{stroke:none}
""".strip().replace("\n", "")

Scale = Callable[[float], float]


def scale(low: float, high: float, left: float, right: float) -> Scale:
    """From values to places: `low` to `left`, `high` to `right`."""
    return lambda value: left + (value - low) / (high - low) * (right - left)


@dataclass
class Drawing:
    """What is drawn so far."""

    title: str  # one sentence: what the figure shows
    height: int  # in units of which it is 480 wide
    _parts: list[str] = field(default_factory=list)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, kind: str = "line", width: float = 1.0
    ) -> None:
        """A straight line."""
        self._parts.append(
            f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke-width="{width:g}"/>'
        )

    def path(
        self, points: Iterable[tuple[float, float]], kind: str, *, filled: bool = False
    ) -> None:
        """A line through points, or the area below them."""
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        look = (
            'fill-opacity="0.25" stroke-width="1.5"'
            if filled
            else 'style="fill:none" stroke-width="2"'
        )
        self._parts.append(f'<polyline class="{kind}" points="{way}" {look}/>')

    def dot(self, x: float, y: float, kind: str = "one", radius: float = 4.0) -> None:
        """A mark."""
        self._parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>')

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str = "one") -> None:
        """A filled rectangle."""
        self._parts.append(
            f'<rect class="{kind}" stroke="none" style="stroke:none" x="{x:.1f}" y="{y:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}"/>'
        )

    def text(
        self, x: float, y: float, said: str, kind: str = "", anchor: str = "start", size: int = 14
    ) -> None:
        """Words, their baseline at y; `anchor` is start, middle or end."""
        sized = f' style="font-size:{size}px"' if size != 14 else ""
        self._parts.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{sized}>'
            f"{escape(said)}</text>"
        )

    def interval(
        self, place: Scale, y: float, low: float, value: float, high: float, kind: str
    ) -> None:
        """A value with its interval, lying."""
        self.line(place(low), y, place(high), y, kind, 2.5)
        for end in (low, high):
            self.line(place(end), y - 5, place(end), y + 5, kind, 2.0)
        self.dot(place(value), y, kind, 4.5)

    def axis(
        self, place: Scale, y: float, ticks: Sequence[float], title: str = "", form: str = "g"
    ) -> None:
        """A lying axis with its ticks and title below."""
        self.line(place(ticks[0]), y, place(ticks[-1]), y)
        for tick in ticks:
            self.line(place(tick), y, place(tick), y + 5)
            self.text(place(tick), y + 19, format(tick, form), "muted", "middle", 13)
        if title:
            self.text(
                (place(ticks[0]) + place(ticks[-1])) / 2, y + 37, title, "muted", "middle", 13
            )

    def svg(self) -> str:
        """The whole figure."""
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" height="{self.height}" role="img" aria-labelledby="t">\n'
            f'<title id="t">{escape(self.title)}</title>\n<style>{_STYLE}</style>\n'
            f'<rect class="ground" width="{WIDTH}" height="{self.height}" rx="8"/>\n{body}\n</svg>\n'
        )
