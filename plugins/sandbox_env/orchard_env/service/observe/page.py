"""The status page, as HTML. It loads nothing, runs no script, and escapes whatever it shows."""

from __future__ import annotations

import base64
import hashlib
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, Template
from starlette.responses import HTMLResponse

from orchard_env.figures import dollars, span
from orchard_env.service.observe.labels import harmless
from orchard_env.types.overview import Overview

_span = partial(span, units=(" s", " min", " h", " d"))


def status_page(view: Overview, *, leaves: bool) -> HTMLResponse:
    """The state of the service; with `leaves` there is a way out."""
    return _answer(200, view=view, leaves=leaves)


def locked_page(status: int, why: str) -> HTMLResponse:
    """Where a key is asked for."""
    return _answer(status, view=None, why=why)


def _answer(status: int, **values: object) -> HTMLResponse:
    style = _file("status.css")
    text = _template().render(style=style, **values)
    return HTMLResponse(text, status, headers=_headers(style))


@cache
def _template() -> Template:
    made = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"plain": harmless, "words": words, "span": _span, "usd": dollars}
    return made.from_string(_file("status.html"))


@cache
def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _headers(style: str) -> dict[str, str]:
    told = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {
        "content-security-policy": f"default-src 'none'; style-src 'sha256-{told}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


def words(text: str) -> str:
    """A sentence, harmless."""
    return harmless(text, 1000)
