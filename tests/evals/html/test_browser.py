"""In a real Chromium: nothing is fetched, nothing overflows, nothing complains, links lead somewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchard_core.evals.html.files import write_html
from orchard_core.evals.matrix import build_matrix
from tests.browser import HOW_TO, Tab, find_chromium, open_tab

from .making import NASTY, write_matrix

CHROMIUM = find_chromium()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO)]
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DEAD_LINKS = """[...document.querySelectorAll('a[href^="#"]')]
    .map(a => a.getAttribute('href').slice(1)).filter(id => !document.getElementById(id))"""
CONTRAST = """(() => {
    const parse = c => c.match(/[\\d.]+/g).map(Number);
    const light = c => { const [r, g, b] = parse(c).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (c !== "rgba(0, 0, 0, 0)") return c; } return 'rgb(255, 255, 255)'; };
    const poor = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || e.closest('svg, .skip, .space') || !e.checkVisibility()) continue;
        const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${e.tagName}.${e.className} ${e.textContent}`);
    }
    return poor; })()"""
UNNAMED = """[...document.querySelectorAll('table')].filter(t => !t.caption)
    .concat([...document.querySelectorAll('th:not([scope])')]).length"""


@pytest.fixture
async def report(tmp_path: Path) -> str:
    target = tmp_path / "report.html"
    write_html(build_matrix(await write_matrix(tmp_path / "m")), target, trajectories=True)
    return target.as_uri()


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    assert CHROMIUM is not None
    async with open_tab(CHROMIUM, tmp_path / "profile") as opened:
        yield opened


async def test_it_loads_itself_alone_and_complains_of_nothing(tab: Tab, report: str) -> None:
    await tab.look(1440, "light")
    await tab.open(report)
    assert [address for address in tab.requests if not address.startswith("data:")] == [report]
    assert tab.complaints == []
    assert await tab.ask("document.styleSheets.length") == 1


@pytest.mark.parametrize("width", [360, 768, 1440])
async def test_the_page_never_scrolls_sideways(tab: Tab, report: str, width: int) -> None:
    await tab.look(width, "light")
    await tab.open(report)
    await tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert await tab.ask(OVERFLOW) <= 0


async def test_hostile_names_neither_run_nor_widen_the_page(tab: Tab, tmp_path: Path) -> None:
    target = tmp_path / "hostile.html"
    matrix = build_matrix(await write_matrix(tmp_path / "h", tail=NASTY + "w" * 300))
    write_html(matrix, target, trajectories=True)
    await tab.look(360, "light")
    await tab.open(target.as_uri())
    await tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert await tab.ask(OVERFLOW) <= 0
    assert await tab.ask("document.querySelectorAll('script, img, iframe, object, [onerror]').length") == 0
    await tab.open((tmp_path / "hostile-rollouts" / "r1-1.html").as_uri())
    assert await tab.ask(OVERFLOW) <= 0
    assert tab.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_is_readable_in_both_colour_schemes(tab: Tab, report: str, scheme: str) -> None:
    await tab.look(1440, "dark" if scheme == "dark" else "light")
    await tab.open(report)
    paper = await tab.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(15, 20, 25)" if scheme == "dark" else "rgb(253, 253, 252)")
    await tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert await tab.ask(CONTRAST) == []


async def test_every_link_leads_somewhere_and_opens_the_list_it_leads_into(tab: Tab, report: str) -> None:
    await tab.look(1440, "light")
    await tab.open(report)
    assert await tab.ask(DEAD_LINKS) == []
    assert await tab.ask("document.querySelector('details.cell').open") is False
    await tab.ask("document.querySelector('.grid td a').click()")
    opened = (
        "new Promise(done => requestAnimationFrame(() => done(document.querySelector('details.cell').open)))"
    )
    assert await tab.ask(opened) is True


async def test_a_rollout_leads_to_its_transcript_and_back(tab: Tab, report: str) -> None:
    await tab.open(report)
    address = await tab.ask("document.querySelector('.list th a').href")
    await tab.open(address)
    assert await tab.ask("document.querySelector('h1').textContent") == "task-0 #0"
    assert await tab.ask("document.querySelector('.over a').href") == f"{report}#r1-1"
    assert tab.complaints == []


async def test_choices_work_without_a_script(tab: Tab, report: str) -> None:
    await tab.open(report)
    await tab.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    shown = "[...document.querySelectorAll('.list tbody tr')].filter(r => r.checkVisibility()).length"
    assert await tab.ask(shown) == 24
    await tab.ask("document.getElementById('rows-failed').click()")
    assert await tab.ask(shown) == 10


async def test_tables_are_named_for_those_who_hear_them(tab: Tab, report: str) -> None:
    await tab.open(report)
    assert await tab.ask(UNNAMED) == 0
    assert await tab.ask("[...document.querySelectorAll('svg:not([aria-hidden])')].every(s => s.ariaLabel)")


async def test_on_paper_everything_but_closed_lists_is_light_and_there(tab: Tab, report: str) -> None:
    await tab.look(794, "dark", media="print")
    await tab.open(report)
    assert await tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert await tab.ask("document.querySelector('nav').checkVisibility()") is False
    cut = """[...document.querySelectorAll('.scroll')]
        .filter(s => s.checkVisibility() && s.scrollWidth > s.clientWidth)"""
    assert await tab.ask(f"{cut}.length") == 0
    assert await tab.ask(OVERFLOW) <= 0
