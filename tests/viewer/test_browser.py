"""In a real Chromium: it loads itself alone, fits every screen, and what it offers works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchard_core.datasets.credit.head import CreditHead
from orchard_core.datasets.credit.writer import CreditWriter
from orchard_core.viewer.guard import Door
from orchard_core.viewer.search.writing import bring_up_to_date
from orchard_core.viewer.serve import serving
from orchard_core.viewer.sources.shelf import Shelf
from tests.browser import HOW_TO, Tab, find_chromium, open_tab
from tests.evals.html.test_browser import CONTRAST, OVERFLOW, UNNAMED

from .making import (
    NASTY,
    Recorder,
    answer,
    data_url,
    failed_rollout,
    make_credit,
    make_rollout,
    png,
    tool,
    worked,
    write_run,
)

CHROMIUM = find_chromium()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO)]
PLACES = (
    "/",
    "/1/",
    "/1/?score=failed&sort=-turns",
    "/1/?q=zebra",
    "/1/totals-1-0",
    "/1/nasty-0",
    "/1/pictures-0",
    "/task?id=totals-1",
    "/compare?a=/1/totals-1-0&b=/1/totals-1-1",
    "/1/nothing",
)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    nasty, pictures = Recorder(), Recorder()
    nasty.call([{"role": "user", "content": NASTY}], answer(NASTY, NASTY, thought=NASTY, name=NASTY))
    parts = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in (data_url(png()), "https://x.example/a.png")
    ]
    base = pictures.call([{"role": "user", "content": parts}], answer("blue", "cat long"))
    pictures.call([tool("zebra row\n" * 60_000)], answer("done"), base=base)
    rollouts = [
        make_rollout("totals-1"),
        make_rollout("totals-1", 1, score=0.0, trajectory=worked(8), harness="w" * 90),
        failed_rollout("x" * 120, message=NASTY + "y" * 500),
        make_rollout("nasty", trajectory=nasty.trajectory(), id="nasty-0"),
        make_rollout("pictures", trajectory=pictures.trajectory(), id="pictures-0"),
    ]
    run = await write_run(tmp_path / "run", rollouts)
    with CreditWriter.open(run / "credit" / "branch", CreditHead(estimator="branch")) as writer:
        writer.add(make_credit("totals-1-0"))
    shelf = Shelf.open([run])
    bring_up_to_date(shelf.sources[0], tmp_path / "cache")
    async with serving(shelf, cache=tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
async def tab(tmp_path: Path, door: Door) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None
    async with open_tab(CHROMIUM, tmp_path / "profile") as opened:
        await opened.look(1440, "light")
        await opened.open(door.link)
        yield opened


def base_of(door: Door) -> str:
    return door.link.split("/?")[0]


async def press(tab: Tab, key: str) -> None:
    """A key, as a keyboard sends it."""
    for kind in ("keyDown", "keyUp"):
        await tab.send("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")


async def until(tab: Tab, script: str) -> None:
    """Wait for an expression to hold."""
    for _ in range(300):
        try:
            if await tab.ask(f"document.readyState === 'complete' && Boolean({script})"):
                return
        except AssertionError:
            pass  # between two pages there is nobody to ask
        await asyncio.sleep(0.05)
    raise AssertionError(f"it never held: {script}")


async def test_the_link_leads_home_and_leaves_the_address_bar(tab: Tab, door: Door) -> None:
    assert await tab.ask("location.href") == base_of(door) + "/"
    assert await tab.ask("document.cookie") == ""


async def test_every_page_loads_itself_alone_and_complains_of_nothing(tab: Tab, door: Door) -> None:
    for place in PLACES[:-1]:
        await tab.open(base_of(door) + place)
    assert all(url.startswith((base_of(door), "data:,")) for url in tab.requests), tab.requests
    assert tab.complaints == []


@pytest.mark.parametrize("width", [360, 768, 1440])
async def test_no_page_scrolls_sideways(tab: Tab, door: Door, width: int) -> None:
    await tab.look(width, "light")
    for place in PLACES:
        await tab.open(base_of(door) + place)
        await tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert await tab.ask(OVERFLOW) <= 0, place


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_is_readable_in_both_colour_schemes(tab: Tab, door: Door, scheme: str) -> None:
    await tab.look(1440, "dark" if scheme == "dark" else "light")
    for place in PLACES:
        await tab.open(base_of(door) + place)
        paper = await tab.ask("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(15, 20, 25)" if scheme == "dark" else "rgb(253, 253, 252)")
        assert await tab.ask(CONTRAST) == [], place


async def test_tables_are_named_and_buttons_say_what_they_do(tab: Tab, door: Door) -> None:
    for place in PLACES:
        await tab.open(base_of(door) + place)
        assert await tab.ask(UNNAMED) == 0, place
        nameless = (
            "[...document.querySelectorAll('button, a[href], input:not([type=hidden])')].filter(e => !(e"
            ".textContent.trim() || e.ariaLabel || e.labels?.length || e.querySelector('title, img'))).length"
        )
        assert await tab.ask(nameless) == 0, place


async def test_nothing_hostile_runs_and_the_policy_stops_what_is_put_in(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/nasty-0")
    assert "owned" not in await tab.ask("document.title")
    assert (
        await tab.ask(
            "document.querySelectorAll('script, iframe, object, embed, [onerror], [onload]').length"
        )
        == 1
    )
    put_in = "(() => { try { %s; return false } catch { return true } })()"
    assert await tab.ask(put_in % "document.createElement('script').src = '/1/nasty-0/raw.json'")
    assert await tab.ask(put_in % "document.body.innerHTML = '<b>x</b>'")
    await tab.ask(
        "(() => { const i = document.createElement('img'); i.src = 'https://x.example/i.png';"
        " document.body.append(i); })()"
    )
    assert await tab.ask("fetch('https://x.example/').then(() => false, () => true)")
    assert "owned" not in await tab.ask("document.title")
    assert any("Content Security Policy" in said for said in tab.complaints)


async def test_keys_walk_through_turns_and_rollouts(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/totals-1-0")
    for expected in ("#turn-0", "#turn-1", "#turn-2"):
        await press(tab, "j")
        assert await tab.ask("location.hash") == expected
    await press(tab, "k")
    assert await tab.ask("document.activeElement.id") == "turn-1"
    await press(tab, "f")
    assert await tab.ask("document.body.classList.contains('folded')")
    await press(tab, "s")
    assert await tab.ask("document.querySelector('details.system').open")
    await press(tab, "?")
    assert await tab.ask("document.querySelector('#keys').open")
    await tab.ask("document.querySelector('#keys').close()")
    await press(tab, "n")
    await until(tab, "location.pathname === '/1/totals-1-1'")
    await press(tab, "p")
    await until(tab, "location.pathname === '/1/totals-1-0'")
    await press(tab, "u")
    await until(tab, "location.pathname === '/1/'")
    await press(tab, "/")
    assert await tab.ask("document.activeElement.id") == "q"


async def test_a_deep_link_leads_to_its_turn(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/totals-1-1#turn-7")
    assert await tab.ask("document.activeElement.id") == "turn-7"
    assert await tab.ask("document.querySelector('.outline a.now').hash") == "#turn-7"


async def test_a_point_of_the_curve_leads_to_its_turn(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/totals-1-0")
    await tab.ask(
        "document.querySelectorAll('.curve a')[3].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    await until(tab, "location.hash === '#turn-4'")


async def test_tokens_are_shaded_on_demand(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/totals-1-0#turn-1")
    await press(tab, "t")
    await until(tab, "document.querySelector('#turn-1 .shade span')")
    kinds = await tab.ask("new Set([...document.querySelectorAll('.shade span')].map(s => s.className)).size")
    assert kinds > 3
    assert "probability" in await tab.ask("document.querySelector('.shade span').title")
    await press(tab, "t")
    assert await tab.ask("document.querySelector('.shade') === null")
    await tab.ask("document.querySelector('#turn-0 a.tokens').click()")
    await until(tab, "document.querySelector('#turn-0 .shade .left')")
    assert "not trained: side" in await tab.ask("document.querySelector('#turn-0 .shade .left').title")


async def test_a_long_text_is_fetched_when_it_is_asked_for(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/pictures-0")
    link = "document.querySelector('.result .more, .role-tool .more')"
    await tab.ask(f"{link}.click()")
    await until(tab, f"{link}.textContent.startsWith('Show more')")
    for _ in range(2):
        before = await tab.ask(f"{link}.textContent")
        await tab.ask(f"{link}.click()")
        await until(tab, f"{link}?.textContent !== {before!r}")
    await until(tab, f"{link} === null")
    assert await tab.ask("document.querySelector('.role-tool pre').textContent.length") == 600_000


async def test_a_picture_is_shown(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/pictures-0")
    await until(tab, "document.querySelector('.image img').naturalWidth === 8")
    assert await tab.ask("document.querySelectorAll('.image img').length") == 1


async def test_filters_and_search_are_links_and_a_form(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/")
    await tab.ask(
        "[...document.querySelectorAll('.facets a')].find(a => a.textContent.includes('failed')).click()"
    )
    await until(tab, "location.search === '?score=failed'")
    await until(tab, "document.querySelectorAll('.lines tbody tr').length === 1")
    await tab.open(base_of(door) + "/1/")
    await tab.ask("(q => { q.value = 'zebra'; q.form.requestSubmit(); })(document.querySelector('#q'))")
    await until(tab, "location.search === '?q=zebra'")
    await until(tab, "document.querySelectorAll('.lines tbody tr').length === 1")
    await tab.ask("document.querySelector('.lines tbody th a').click()")
    await until(tab, "document.activeElement.id === 'turn-0'")


async def test_two_are_chosen_and_stand_side_by_side(tab: Tab, door: Door) -> None:
    await tab.open(base_of(door) + "/1/totals-1-0")
    await tab.ask(
        "[...document.querySelectorAll('.links a')].find(a => a.textContent.includes('Compare')).click()"
    )
    await until(tab, "document.querySelector('button.primary')")
    await tab.ask("document.querySelector('button.primary').click()")
    await until(tab, "location.pathname === '/compare'")
    await until(tab, "document.querySelectorAll('section.pair').length === 8")
    halves = "[...document.querySelectorAll('section.pair .half')].slice(0, 2)"
    sides = f"{halves}.map(half => half.getBoundingClientRect().left)"
    left, right = await tab.ask(sides)
    assert left < right
    await press(tab, "j")
    assert await tab.ask("location.hash") == "#turn-0"
    await tab.look(390, "light")
    left, right = await tab.ask(sides)
    assert left == right


async def test_on_paper_the_conversation_is_left(tab: Tab, door: Door) -> None:
    await tab.look(794, "dark", media="print")
    await tab.open(base_of(door) + "/1/totals-1-0")
    assert await tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert (
        await tab.ask("[...document.querySelectorAll('.bar, .outline')].some(e => e.checkVisibility())")
        is False
    )
    assert await tab.ask(
        "document.querySelector('details.system pre').checkVisibility({contentVisibilityAuto: true})"
    )
    assert await tab.ask(OVERFLOW) <= 0
