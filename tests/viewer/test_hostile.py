"""A rollout may hold anything; a page shows it as text, bounded, and nothing of it works."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchard_core import Task
from orchard_core.types.model import Message
from orchard_core.viewer.image import MOST_PIXELS, from_data_url, peek, picture

from .conftest import Opens
from .making import (
    NASTY,
    Recorder,
    answer,
    data_url,
    failed_rollout,
    make_rollout,
    png,
    tool,
    worked,
    write_run,
)

KEPT = NASTY.replace("\ud800", "")
"""The same as far as a run's configuration can hold it."""
HUGE = 600_000
"""Bytes of a page, whatever the rollout holds."""


class Markup(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def check(self) -> None:
        scripts = [attrs for tag, attrs in self.tags if tag == "script"]
        assert len(scripts) == 1
        assert str(scripts[0]["src"]).startswith("/static/viewer.js")
        for tag, attrs in self.tags:
            assert tag not in {"iframe", "object", "embed", "base", "style", "template"}
            assert not any(name.startswith("on") or name == "style" for name in attrs), (tag, attrs)
            for name in ("href", "src", "action"):
                value = attrs.get(name) or "/"
                assert value[0] in "/#?" or value == "data:,", (tag, attrs)


async def pages_of(viewer: Opens, run: Path) -> list[str]:
    async with viewer(run) as client:
        line = client.shelf.sources[0].lines().lines[0]
        places = ["/", "/1/", f"{line.address}", f"/compare?a={line.address}&b={line.address}"]
        return [await client.page(place) for place in places]


async def test_nothing_that_a_rollout_says_becomes_markup(viewer: Opens, tmp_path: Path) -> None:
    recorder = Recorder()
    asked = {"role": "user", "content": [{"type": "text", "text": NASTY}, {"type": NASTY, NASTY: NASTY}]}
    base = recorder.call(
        [{"role": "system", "content": NASTY}, asked], answer(NASTY, NASTY, thought=NASTY, name=NASTY)
    )
    recorder.call([{**tool(NASTY, NASTY), "name": NASTY}], answer(NASTY), base=base)
    rollout = failed_rollout("x", message=NASTY).model_copy(
        update={
            "trajectory": recorder.trajectory(),
            "task": Task(id=NASTY, taskset=NASTY, instruction=NASTY, tags=(NASTY,)),
            "id": NASTY,
            "harness": NASTY,
            "model": NASTY,
        }
    )
    run = await write_run(tmp_path / "run", [rollout], harness=KEPT, model=KEPT, taskset=KEPT)
    for page in await pages_of(viewer, run):
        Markup(page).check()
        assert not re.search("[\x00-\x08\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    async with viewer(run) as client:
        page = await client.page(client.shelf.sources[0].lines().lines[0].address)
        assert "⟨U+202E⟩" in page
        assert "⟨ESC⟩[31mred" in page.replace("</span>", "")
        assert "&lt;/script&gt;" in page
        assert "{{ 7*7 }}" in page


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "not json",
        "[" * 100_000,
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        "null",
        "[1, 2]",
        '{"role": 7, "content": {"a": [1]}}',
        '{"role": "assistant", "content": [null, 1, {"type": null}], "tool_calls": [null, {"function": 3}]}',
        '{"role": "assistant", "tool_calls": {"a": 1}, "content": null, "reasoning": 3}',
        '{"role": "tool", "content": [{"type": "tool_result", "content": [[[]]]}]}',
        '{"role": "user", "content": "\\ud800 \\udfff"}',
        '{"type": "function_call", "arguments": {"x": NaN}}',
    ],
)
async def test_a_message_of_any_shape_is_shown(viewer: Opens, tmp_path: Path, raw: str) -> None:
    recorder = Recorder()
    recorder.call([{"role": "user", "content": "x"}], answer("y"))
    trajectory = recorder.trajectory()
    keys = list(trajectory.messages)
    odd = {keys[0]: Message(role="user", raw=raw), keys[1]: Message(role="assistant", raw=raw)}
    rollout = make_rollout(trajectory=trajectory.model_copy(update={"messages": odd}))
    run = await write_run(tmp_path / "run", [rollout])
    for page in await pages_of(viewer, run):
        Markup(page).check()
        assert len(page) < HUGE


async def test_a_message_of_30_megabytes_costs_no_page_of_that_size(viewer: Opens, tmp_path: Path) -> None:
    recorder = Recorder(tokens=False)
    base = recorder.call([{"role": "user", "content": "go"}], answer("on", "cat"))
    recorder.call([tool("y" * (30 << 20))], answer("done", "z" * (1 << 20)), base=base)
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        assert len(page) < 60_000
        assert f"Show all {30 << 20:,} characters" in page
        address = re.findall(r'class="more" href="([^"]+)"', page)[0]
        piece = await client.ask(f"{address}?from={(30 << 20) - 5}")
        assert (piece.text, piece.headers["orchard-left"]) == ("yyyyy", "0")


@pytest.mark.slow
async def test_a_field_of_100_megabytes_is_shown_from_its_beginning(viewer: Opens, tmp_path: Path) -> None:
    recorder = Recorder(tokens=False)
    recorder.call([{"role": "user", "content": "w" * (100 << 20)}], answer("done"))
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        assert "wwwwwwwwww" in page
        assert len(page) < 60_000


@pytest.mark.slow
async def test_100_000_turns_are_read_a_page_at_a_time(viewer: Opens, tmp_path: Path) -> None:
    recorder = Recorder(tokens=False)
    base = recorder.call([{"role": "user", "content": "go"}], answer("0", "true"))
    one = recorder.calls[0]
    said, seen = recorder.keep(answer("again", "true")), recorder.keep(tool("ok"))
    for index in range(1, 100_000):
        refs = one.messages.model_copy(
            update={
                "base": base,
                "keep": 2 * index - 1,
                "added": (one.response if index == 1 else said, seen),
            }
        )
        recorder.calls.append(one.model_copy(update={"index": index, "messages": refs, "response": said}))
        base = index
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0?turn=99999")
        assert 'id="turn-99999"' in page
        assert 'id="turn-99799"' not in page
        assert len(page) < HUGE


async def test_many_messages_in_one_request_are_counted_and_not_all_shown(
    viewer: Opens, tmp_path: Path
) -> None:
    recorder = Recorder(tokens=False)
    recorder.call([{"role": "user", "content": f"message {n}"} for n in range(5_000)], answer("y"))
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        assert "4,800 further messages" in page
        assert len(page) < HUGE


async def test_only_raster_pictures_are_sent_as_pictures(viewer: Opens, tmp_path: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    addresses = [
        data_url(png()),
        data_url(svg, "image/svg+xml"),
        data_url(svg, "image/png"),
        data_url(b"<script>alert(1)</script>", "image/png"),
        "https://example.com/tracker.png",
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        data_url(png()[:20]),
        "file:///etc/passwd",
    ]
    parts = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    recorder = Recorder()
    recorder.call([{"role": "user", "content": parts}], answer("seen"))
    run = await write_run(tmp_path / "run", [make_rollout(trajectory=recorder.trajectory())])
    async with viewer(run) as client:
        page = await client.page("/1/totals-1-0")
        Markup(page).check()
        (shown,) = re.findall(r'<img src="([^"]+)"', page)
        good = await client.ask(shown)
        assert (good.headers["content-type"], good.body) == ("image/png", png())
        base = shown.rpartition(".")[0]
        for number in range(1, len(addresses)):
            assert (await client.ask(f"{base}.{number}")).status == 404


def test_a_picture_that_claims_too_many_pixels_is_not_shown() -> None:
    bomb = bytearray(png())
    bomb[16:24] = (100_000).to_bytes(4, "big") * 2
    assert picture(bytes(bomb)) == "claims 100,000 by 100,000 pixels"
    assert isinstance(from_data_url(data_url(bytes(bomb))), str)
    assert isinstance(peek(data_url(bytes(bomb))), str)
    assert MOST_PIXELS < 100_000**2


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"GIF89a\x40\x01\xf0\x00" + bytes(20), (320, 240)),
        (b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\xf0\x01\x40" + bytes(20), (320, 240)),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x3f\x01\x00\xef\x00\x00", (320, 240)),
    ],
)
def test_the_size_of_a_picture_is_read_off_its_head(head: bytes, size: tuple[int, int]) -> None:
    found = picture(head)
    assert not isinstance(found, str)
    assert (found.width, found.height) == size


async def test_ids_that_are_no_names_have_addresses_all_the_same(viewer: Opens, tmp_path: Path) -> None:
    ids = ["../../etc/passwd", "a/b", "a b", "?x=1#y", "x" * 5000, "..", "matrix", "\u202e", "%2e%2e"]
    trajectory = worked(1, side=False)
    rollouts = [make_rollout("t", n, id=name, trajectory=trajectory) for n, name in enumerate(ids)]
    run = await write_run(tmp_path / "run", rollouts)
    async with viewer(run) as client:
        page = await client.page("/1/")
        found = re.findall(r'class="t"><a href="([^"?]+)', page)
        assert len(set(found)) == len(ids)
        for address in found:
            assert re.fullmatch(r"/1/[A-Za-z0-9_~-]{1,80}", address)
            raw = json.loads((await client.ask(f"{address}/raw.json")).body)
            assert raw["id"] in ids


async def test_a_record_that_would_unpack_to_too_much_is_not_unpacked(viewer: Opens, tmp_path: Path) -> None:
    import zstandard

    from orchard_core.rollout.store.frame import _HEADER, _MAGIC, _TAG

    run = await write_run(tmp_path / "run", [make_rollout()])
    shard = run / "shards" / "00000.jsonl.zst"
    size = shard.stat().st_size - _HEADER.size
    maker = zstandard.ZstdCompressor().compressobj(size=3 << 30)
    payload = maker.compress(b" ")[:10] + maker.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    payload = payload.ljust(size, b"\0")[:size]
    import zlib

    shard.write_bytes(_HEADER.pack(_MAGIC, 16, _TAG, len(payload), zlib.crc32(payload)) + payload)
    async with viewer(run) as client:
        told = await client.ask("/1/totals-1-0")
        assert told.status == 500
        assert "would unpack to 3,221,225,472 bytes" in told.text
