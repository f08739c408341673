"""A real Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLAYWRIGHT = ("chromium-*/chrome-linux*/chrome", "chromium_headless_shell-*/chrome-*/headless_shell")
HOW_TO = "no Chromium here: `apt install chromium`, or `uvx playwright install chromium`"
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
)


def find_chromium() -> str | None:
    """On PATH, or where Playwright puts its own."""
    found = [path for name in NAMES if (path := shutil.which(name))]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"
    found += [str(path) for pattern in PLAYWRIGHT for path in sorted(cache.glob(pattern))]
    return found[0] if found else None


class Tab:
    """One page and everything it complained about."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.session = ""
        """Which page, once there is one."""
        self.complaints: list[str] = []
        """Console messages, errors, and what the content security policy stopped."""
        self.requests: list[str] = []
        """Every address that was asked for."""

    async def listen(self) -> None:
        """Until the browser goes away."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said)
            else:
                self._note(said["method"], said["params"])

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        elif method == "Page.loadEventFired":
            self._loaded.set()

    async def send(self, method: str, **params: object) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": params}
        await self._socket.send_json(asked | ({"sessionId": self.session} if self.session else {}))
        answer = await asyncio.wait_for(self._waiting[number], 30)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    async def begin(self) -> None:
        """Make the page and listen to everything it says."""
        target = (await self.send("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")

    async def look(self, width: int, scheme: Literal["light", "dark"], media: str = "screen") -> None:
        """Be a screen of this width and colour scheme, or paper."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.send("Emulation.setEmulatedMedia", media=media, features=[feature])

    async def open(self, address: str) -> None:
        """Go there, and wait until everything is loaded."""
        self._loaded.clear()
        await self.send("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded.wait(), 60)

    async def ask(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


@asynccontextmanager
async def open_tab(chromium: str, profile: Path) -> AsyncIterator[Tab]:
    """A browser of its own with one page; both end with the block."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    process = await asyncio.create_subprocess_exec(
        chromium, *FLAGS, *root, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        address = await asyncio.wait_for(_address(process.stderr), 60)
        draining = asyncio.create_task(process.stderr.read())
        async with aiohttp.ClientSession() as http, http.ws_connect(address, max_msg_size=0) as socket:
            tab = Tab(socket)
            listening = asyncio.create_task(tab.listen())
            await tab.begin()
            yield tab
            listening.cancel()
        draining.cancel()
    finally:
        process.terminate()
        await process.wait()


async def _address(stderr: asyncio.StreamReader) -> str:
    async for line in stderr:
        text = line.decode(errors="replace")
        if text.startswith("DevTools listening on "):
            return text.removeprefix("DevTools listening on ").strip()
    raise AssertionError("Chromium ended before it listened")
