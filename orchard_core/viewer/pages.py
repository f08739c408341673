"""Templates: everything is escaped, hidden characters are shown, and the only script is ours, by a nonce."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from orchard_core.evals.html import words
from orchard_core.evals.html.verdict import Verdict
from orchard_core.viewer.curve_svg import draw
from orchard_core.viewer.verdicts import verdict_of
from orchard_core.viewer.visible import one_line, plain, visible

_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SHEETS = (("orchard_core.evals.html", "tokens.css"), ("orchard_core.viewer", "static/viewer.css"))
"""The report's colours, then what the viewer adds."""
_TYPES = {"viewer.css": "text/css", "viewer.js": "text/javascript"}


def page(template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """One page with its policy."""
    nonce = secrets.token_urlsafe(18)
    text = _environment().get_template(template).render(nonce=nonce, **values)
    headers = {"content-security-policy": _POLICY.format(nonce=nonce)}
    return HTMLResponse(text.encode("utf-8", "replace"), status_code=status, headers=headers)


def message(title: str, text: str, *, status: int, hint: str = "") -> HTMLResponse:
    """A page that says one thing."""
    return page("message.html", status=status, title=title, text=text, hint=hint)


def static(name: str) -> Response | None:
    """The style sheet or the script; None: there is no other file."""
    held = _static().get(name)
    if held is None:
        return None
    cached = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(held, media_type=f"{_TYPES[name]}; charset=utf-8", headers=cached)


@cache
def _static() -> Mapping[str, bytes]:
    sheet = b"\n".join(files(package).joinpath(name).read_bytes() for package, name in SHEETS)
    return {
        "viewer.css": sheet,
        "viewer.js": files("orchard_core.viewer").joinpath("static/viewer.js").read_bytes(),
    }


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("orchard_core.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        auto_reload=False,
    )
    made.globals |= {
        "w": words,
        "curve_svg": draw,
        "verdict_of": verdict_of,
        "Verdict": Verdict,
        "version": version("orchard-core"),
        "stamps": {name: sha256(data).hexdigest()[:12] for name, data in _static().items()},
    }
    made.filters |= {"line": one_line, "seen": visible, "query": _query}
    return made


def _query(parts: Mapping[str, str]) -> str:
    return urlencode(parts, errors="replace")


def _shown(value: object) -> object:
    """Markup of ours as it is; any other text with what is hidden in it in words, then escaped. It holds in
    attributes too; `seen` marks those words as well, and is for text alone."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
