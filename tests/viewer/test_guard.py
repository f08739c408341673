"""Only whoever has the link reads, in a browser, at our own address."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from .conftest import Client, Opens
from .making import make_rollout, write_run

PLACES = ("/", "/1/", "/1/totals-1-0", "/1/totals-1-0/raw.json", "/static/viewer.js", "/progress?source=1")


@pytest.fixture
async def run(tmp_path: Path) -> Path:
    return await write_run(tmp_path / "run", [make_rollout()])


def link(client: Client) -> str:
    return client.door.link.removeprefix(client.base)


@pytest.mark.parametrize("place", PLACES)
async def test_without_the_link_nothing_is_read(viewer: Opens, run: Path, place: str) -> None:
    async with viewer(run, enter=False) as client:
        answer = await client.ask(place)
        assert answer.status == 403
        assert "totals" not in answer.text


async def test_a_link_lets_in_once_and_leaves_the_address(viewer: Opens, run: Path) -> None:
    async with viewer(run, enter=False) as client:
        used = link(client)
        answer = await client.ask(used)
        assert (answer.status, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await client.ask("/1/")).status == 200
        assert link(client) != used
    async with viewer(run, enter=False) as other:
        assert (await other.ask(used)).status == 403


async def test_the_used_link_leads_home_the_browser_that_it_let_in_and_no_other(
    viewer: Opens, run: Path
) -> None:
    async with viewer(run, enter=False) as client:
        used = link(client)
        await client.ask(used)
        assert (await client.ask(used)).status == 303
        async with aiohttp.ClientSession() as stranger, stranger.get(client.base + used) as answer:
            assert answer.status == 403


async def test_a_link_followed_from_another_site_carries_its_cookie_to_the_first_page(
    viewer: Opens, run: Path
) -> None:
    async with viewer(run, enter=False) as client:
        answer = await client.ask(link(client), Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
        assert (answer.status, answer.headers["refresh"]) == (200, "0; url=/")


@pytest.mark.parametrize("token", ["", "x", "%00", "%ed%a0%80", "x" * 3000, "a&token=b", "a" + "&b=1" * 40])
async def test_a_guessed_token_is_refused(viewer: Opens, run: Path, token: str) -> None:
    async with viewer(run, enter=False) as client:
        assert (await client.ask(f"/?token={token}")).status == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
async def test_another_name_for_this_port_is_refused(viewer: Opens, run: Path, host: str) -> None:
    async with viewer(run) as client:
        port = client.base.rpartition(":")[2]
        answer = await client.ask("/1/", Host=host.format(port=port))
        assert answer.status in (400, 421)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
async def test_the_names_of_this_machine_are_served(viewer: Opens, run: Path, name: str) -> None:
    async with viewer(run) as client:
        port = client.base.rpartition(":")[2]
        assert (await client.ask("/1/", Host=f"{name}:{port}")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_nothing_can_be_changed(viewer: Opens, run: Path, method: str) -> None:
    async with viewer(run) as client:
        answer = await client.ask("/1/", method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_head_tells_what_get_would(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        answer = await client.ask("/1/", method="HEAD")
        assert answer.status == 200
        assert answer.body == b""


@pytest.mark.parametrize(
    "asked",
    [
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
        {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
    ],
)
async def test_other_sites_and_frames_get_nothing(viewer: Opens, run: Path, asked: dict[str, str]) -> None:
    async with viewer(run) as client:
        assert (await client.ask("/1/totals-1-0/raw.json", **asked)).status == 403


@pytest.mark.parametrize("place", [*PLACES, "/nothing", "/9/"])
async def test_every_answer_forbids_sniffing_frames_and_referrers(
    viewer: Opens, run: Path, place: str
) -> None:
    async with viewer(run) as client:
        headers = (await client.ask(place)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2fpages.py",
        "/static/%2fetc%2fpasswd",
        "/1/..%2f..%2frun.json",
        "/1/totals-1-0/text/..%2f..%2frun.json",
        "/1/totals-1-0/artifact/-1",
        "/1/totals-1-0/artifact/0x1",
        "/1/totals-1-0/tokens/" + "9" * 400,
        "/%00/",
        "/1/%ff%fe",
        "/compare?a=/etc/passwd&b=/etc/passwd",
        "/compare?a=1/totals-1-0",
        "/task?id=..%2f",
        "/1/totals-1-0?from=-1",
        "/1/totals-1-0?turn=" + "9" * 300,
        "//evil.example/",
    ],
)
async def test_addresses_name_nothing_but_what_is_open(viewer: Opens, run: Path, path: str) -> None:
    async with viewer(run) as client:
        answer = await client.ask(path)
        assert answer.status in (400, 404), answer.text[:500]
        assert "root:" not in answer.text


async def test_an_address_comes_back_only_escaped(viewer: Opens, run: Path) -> None:
    async with viewer(run) as client:
        text = await client.page("/1/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&harness=%22onload=%22x")
        assert "<script>alert" not in text
        assert '"onload="' not in text
        assert (await client.ask("/1/?q=" + "a" * 5000)).status == 414


async def test_a_second_viewer_is_not_opened_by_the_first_ones_cookie(viewer: Opens, run: Path) -> None:
    async with viewer(run) as first, viewer(run, enter=False) as second:
        cookie = f"{second.door.cookie}=guessed; {first.door.cookie}=guessed"
        assert (await second.ask("/1/", Cookie=cookie)).status == 403
