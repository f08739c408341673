"""Charts drawn by Vega (vl-convert, the extra `report`), then taken apart and put together again.

The drawing goes into the page itself, so only elements and attributes named here get through.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from markupsafe import Markup

from orchard_core.evals.html.chart import Json

INSTALL = "pip install 'orchard-core[report]'"
_ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "circle", "text"})
_ATTRIBUTES = frozenset(
    {
        *("viewBox", "width", "height", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "r", "cx", "cy"),
        *("fill", "stroke", "stroke-width", "opacity", "fill-opacity", "stroke-opacity"),
        *("text-anchor", "font-size", "font-weight"),
    }
)
_VALUE = re.compile(r"[\w #%.,()+-]*\Z", re.ASCII)
"""What a drawing needs: no colon, quote, semicolon or slash, so neither an address nor a script."""


def can_draw() -> bool:
    """Whether the extra is installed."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def draw(spec: Json, *, label: str) -> Markup:
    """An `<svg>` element with `label` for those who cannot see it. Needs the extra."""
    import vl_convert

    return safe_svg(vl_convert.vegalite_to_svg(spec), label=label)


def safe_svg(text: str, *, label: str) -> Markup:
    """The drawing with nothing in it but shapes and text."""
    root = _kept(ET.fromstring(text))  # noqa: S314 - of our own making; expat bounds entity expansion
    root.set("role", "img")
    root.set("aria-label", label)
    return Markup(ET.tostring(root, encoding="unicode", short_empty_elements=True))  # noqa: S704 - rebuilt


def _kept(element: ET.Element) -> ET.Element:
    made = ET.Element(_name(element), {key: value for key, value in element.items() if _fits(key, value)})
    if made.tag == "text":
        made.text = "".join(element.itertext())
    else:
        made.extend(_kept(child) for child in element if _name(child) in _ELEMENTS and not _empty(child))
    return made


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _fits(key: str, value: str) -> bool:
    return key in _ATTRIBUTES and _VALUE.match(value) is not None and "url" not in value.lower()


def _empty(element: ET.Element) -> bool:
    """Vega's frames that draw nothing."""
    return element.get("display") == "none" or element.get("class") == "background"
