"""Only shapes and text get from a drawing into the page."""

from __future__ import annotations

import re

import pytest

from orchard_core.evals.html.svg import safe_svg

from .reading import read

NAMES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
SVG = f'<svg {NAMES} viewBox="0 0 9 9">{{}}</svg>'


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<a xlink:href="https://evil.example"><rect width="1"/></a>',
        "<foreignObject><p>x</p></foreignObject>",
        '<image href="https://evil.example/x.png"/>',
        '<use href="#x"/>',
        '<rect onclick="alert(1)"/>',
        '<rect style="fill:url(https://evil.example)"/>',
        '<rect fill="url(#x)"/>',
        '<rect fill="javascript:alert(1)"/>',
        '<text><tspan onload="x">said</tspan></text>',
    ],
)
def test_what_could_act_is_left_out(hostile: str) -> None:
    text = str(safe_svg(SVG.format(f'<g fill="none">{hostile}</g>'), label="l"))
    assert set(re.findall(r"<(\w+)", text)) <= {"svg", "g", "rect", "text"}
    assert set(re.findall(r' ([\w:-]+)="', text)) <= {"viewBox", "role", "aria-label", "fill", "width"}
    assert set(re.findall(r'fill="([^"]*)"', text)) == {"none"}


def test_shapes_text_and_colours_of_the_page_get_through() -> None:
    shape = (
        '<path d="M0,0h1v-1Z" fill="var(--c0)" transform="translate(1,2) rotate(-90)"/><text>a &lt; b</text>'
    )
    drawn = read(str(safe_svg(SVG.format(shape), label='"quoted"')))
    assert drawn.one("path").attributes == {
        "d": "M0,0h1v-1Z",
        "fill": "var(--c0)",
        "transform": "translate(1,2) rotate(-90)",
    }
    assert drawn.one("text").text == "a < b"
    assert drawn.one("svg").attributes["aria-label"] == '"quoted"'
