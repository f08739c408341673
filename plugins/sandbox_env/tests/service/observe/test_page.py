"""The status page: hostile words stay words, and a real browser has nothing to complain of."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from orchard_env.service.observe.page import locked_page, status_page
from starlette.responses import Response

from ..running import GENEROUS_S, Running
from .conftest import ADMIN, keys, make, served
from .hostile import EVIL, overview

browser = pytest.importorskip("tests.browser", reason="the browser's driver lies among the core's tests")
CHROMIUM = browser.find_chromium()


def test_hostile_words_are_shown_as_what_they_are() -> None:
    for page in (status_page(overview(), leaves=True), locked_page(403, EVIL)):
        text = bytes(page.body).decode()
        assert "<script" not in text
        assert "<img" not in text
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", text)
        assert "&lt;script" in text


def test_the_page_runs_nothing_and_its_policy_allows_its_own_style_alone() -> None:
    page = status_page(overview(), leaves=True)
    text = bytes(page.body).decode()
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    told = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"style-src 'sha256-{told}'" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "style=" not in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=browser.HOW_TO)
async def test_a_browser_is_let_in_by_the_form_and_shows_the_page_at_every_width(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    with served(tenancy=keys(), key=ADMIN) as service:
        with service.client() as client:
            name = make(client)
        async with browser.open_tab(CHROMIUM, tmp_path / "profile") as tab:
            await tab.look(1000, "light")
            await tab.open(f"{service.url}/status")
            assert await tab.ask("document.querySelector('table')") is None
            await _enter(tab)
            for width, scheme in ((1200, "light"), (400, "dark")):
                await tab.look(width, scheme)
                await tab.open(f"{service.url}/status")
                assert name in await tab.ask("document.body.innerText")
                assert await tab.ask("document.documentElement.scrollWidth <= innerWidth")
            dark = await tab.ask("getComputedStyle(document.body).backgroundColor")
            assert dark == "rgb(18, 20, 25)"
            complaints = [text for text in tab.complaints if "favicon" not in text and "401" not in text]
            assert not complaints
            assert all(url.startswith((service.url, "about:")) for url in tab.requests)


@contextmanager
def shown(page: Response) -> Iterator[str]:
    """Its address, for as long as it is served: the very bytes and headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/status" else 404)
            for name, value in page.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(bytes(page.body))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/status"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


SLIPPED_IN = """new Promise(told => {
    const stopped = [];
    document.addEventListener('securitypolicyviolation', event => {
        stopped.push(event.effectiveDirective);
        if (['script-src-attr', 'img-src', 'style-src-elem'].every(one => stopped.includes(one)))
            told(window.pwned === undefined);
    });
    document.body.insertAdjacentHTML('beforeend',
        '<img src="/x" onerror="window.pwned = 1"><style>body { display: none }</style>');
})"""
"""Whether nothing of what gets past the escaping would run."""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=browser.HOW_TO)
async def test_in_a_browser_hostile_words_are_text_and_what_slipped_through_would_not_run(
    tmp_path: Path,
) -> None:
    assert CHROMIUM is not None
    with shown(status_page(overview(), leaves=True)) as url:
        async with browser.open_tab(CHROMIUM, tmp_path / "profile") as tab:
            for width, scheme in ((1200, "dark"), (400, "light")):
                await tab.look(width, scheme)
                await tab.open(url)
                assert await tab.ask("document.querySelector('script, img, iframe, a, [onerror]')") is None
                assert "<script>alert(1)</script>" in await tab.ask("document.body.innerText")
                assert await tab.ask("document.documentElement.scrollWidth <= innerWidth")
            assert not [text for text in tab.complaints if "favicon" not in text]
            assert not [one for one in tab.requests if one != url and not one.endswith("/favicon.ico")]
            assert await tab.ask(SLIPPED_IN)


async def _enter(tab: Any) -> None:
    """Type the key and send the form, as a person does, and wait for what comes."""
    await tab.ask(
        f"document.querySelector('#key').value = '{ADMIN}'; document.querySelector('button').click()"
    )
    async with asyncio.timeout(GENEROUS_S):
        while True:
            with suppress(AssertionError):  # between two pages there is nobody to ask
                if await tab.ask("document.querySelector('table') !== null"):
                    return
            await asyncio.sleep(0.05)


def test_the_form_needs_no_script(keyed_service: Running) -> None:
    page = httpx.get(f"{keyed_service.url}/status")
    assert page.status_code == 401
    assert '<form method="post" action="/status/enter">' in page.text
    assert "http-equiv" not in page.text  # a page that loads itself anew would eat what is being typed
