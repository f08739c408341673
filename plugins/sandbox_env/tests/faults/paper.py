"""A cluster without machines: the stand-in for an API server behind a gate, and for each of its pods a real
agent behind another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from base64 import b64decode
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from orchard_env.kubernetes.tokens import derive_token
from orchard_env.testing.cluster import FakeCluster, Fault, Settings
from orchard_env.testing.cluster.store import Change

from orchard_core import agent_binary

from .gate import Gate, Stop, Streams

QUICK = Settings(schedule_s=0.01, start_s=0.02, stop_s=0.02, bookmark_s=1.0)
GENEROUS_S = 60.0
_T = TypeVar("_T")


class Paper:
    """Everything of it lives in a thread of its own; its methods are for other threads."""

    def __init__(self, folder: Path, settings: Settings = QUICK) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.loop = asyncio.new_event_loop()
        self.cluster = FakeCluster(settings)
        self.server_gate = Gate(self._dial_server)
        self.agents: dict[str, Agent] = {}
        self.agent_port = _free_port()
        """Every cluster's own, because all have the same addresses."""
        self.sockets = tempfile.TemporaryDirectory(prefix="orchard-paper-")
        """Of the agents: the path of a socket must be short."""
        self._working: set[asyncio.Task[None]] = set()

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in its thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(GENEROUS_S)

    async def open(self) -> None:
        """In its own thread."""
        await self.cluster.__aenter__()
        self.cluster.server.store.told.append(self._changed)
        port = await self.server_gate.open()
        told = self.cluster.kubeconfig()
        told["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{port}"
        self.kubeconfig.write_text(yaml.safe_dump(told))

    async def close(self) -> None:
        """In its own thread."""
        self.cluster.server.store.told.remove(self._changed)
        await asyncio.gather(*self._working, return_exceptions=True)
        for agent in list(self.agents.values()):
            await agent.end()
        await self.server_gate.close()
        await self.cluster.__aexit__(None, None, None)
        self.sockets.cleanup()

    def stop(self, text: str, *, at_agent: str | None = None, answer: bool = False) -> Stop:
        """Stop the next call of the API server, or of one sandbox's agent, that contains the text."""

        async def arm() -> Stop:
            stop = Stop(text=text.encode(), answer=answer)
            gate = self.server_gate if at_agent is None else (await self._agent(at_agent)).gate
            gate.stop_at(stop)
            return stop

        return self.do(arm())

    def go_on(self, stop: Stop, *, deliver: bool) -> None:
        """Let go on what was stopped, or lose it."""
        stop.deliver = deliver
        self.loop.call_soon_threadsafe(stop.released.set)

    def work(self, sandbox: str) -> Path:
        """Where its commands run, seen from here."""
        return self.folder / "work" / sandbox

    def cut(self) -> None:
        """The API server cannot be reached, until `mend`."""
        self.do(self.server_gate.cut())

    def mend(self) -> None:
        """It can again."""
        self.do(self.server_gate.mend())

    def drop_watches(self) -> None:
        """Every watch breaks, and the server has forgotten what happened before."""

        async def drop() -> None:
            self.cluster.drop_watches()
            self.cluster.compact()

        self.do(drop())

    def pods(self) -> set[str]:
        """Names of the sandboxes that stand, or are going."""
        return {name for _, name in list(self.cluster.server.store.all("pods"))}

    def living(self) -> set[str]:
        """Names of the sandboxes whose agents run."""
        return {name for name, agent in list(self.agents.items()) if agent.process.poll() is None}

    def kill_agent(
        self, sandbox: str, reason: str = "Error", status: Mapping[str, object] | None = None
    ) -> None:
        """kill -9; the kubelet tells of it, by that reason and with what else it says of the pod."""
        agent = self.agents[sandbox]
        agent.reason, agent.last_words = reason, status or {}
        agent.kill()

    def says(self, sandbox: str, **status: object) -> None:
        """The cluster tells that of a pod from now on."""

        async def put() -> None:
            store, key = self.cluster.server.store, ("default", sandbox)
            pod = store.all("pods")[key]
            store.put("pods", key, {**pod, "status": {**pod["status"], **status}})

        self.do(put())

    def misleads(self, sandbox: str, to: str) -> None:
        """The address of a pod belongs to another one's agent from now on."""

        async def lead() -> None:
            self.agents[sandbox].led_to(self.agents[to])

        self.do(lead())

    def fails(self, fault: Fault) -> None:
        """The API server does, as often as the fault says."""

        async def add() -> None:
            self.cluster.server.faults.append(fault)

        self.do(add())

    def tell_end(self, agent: Agent) -> None:
        """What a kubelet says when the one container of a pod has ended. In this thread."""
        store, key = self.cluster.server.store, ("default", agent.name)
        pod = store.all("pods").get(key)
        if pod is None or pod["metadata"]["uid"] != agent.uid:
            return
        code = agent.process.wait()
        reason = agent.reason if code else "Completed"
        ended = {"exitCode": code if code >= 0 else 128 - code, "reason": reason}
        told = {**pod["status"]["containerStatuses"][0], "ready": False, "state": {"terminated": ended}}
        phase = "Failed" if code else "Succeeded"
        store.put(
            "pods",
            key,
            {
                **pod,
                "status": {**pod["status"], "phase": phase, "containerStatuses": [told], **agent.last_words},
            },
        )

    async def _dial_server(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.cluster.port)

    async def _agent(self, sandbox: str) -> Agent:
        async with asyncio.timeout(GENEROUS_S):
            while sandbox not in self.agents:
                await asyncio.sleep(0.005)
        return self.agents[sandbox]

    def _changed(self, change: Change) -> None:
        if change.plural != "pods":
            return
        about = change.after["metadata"]
        agent = self.agents.get(about["name"])
        if change.type == "DELETED" and agent is not None and agent.uid == about["uid"]:
            del self.agents[about["name"]]
            self._later(agent.end())
        elif agent is None and change.type != "DELETED" and "podIP" in change.after.get("status", {}):
            made = Agent(self, change.after)
            self.agents[about["name"]] = made
            self._later(made.begin())

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    def token(self, name: str, uid: str) -> str:
        """As the injector derives it."""
        (secret,) = [
            one for one in self.cluster.server.store.all("secrets").values() if "seed" in one["data"]
        ]
        return derive_token(b64decode(secret["data"]["seed"]), name, uid)


class Agent:
    """One pod's."""

    process: subprocess.Popen[bytes]
    reason = "Error"
    """Why it ended, in the kubelet's word."""
    last_words: Mapping[str, object] = {}
    """What is told of its pod then."""

    def __init__(self, paper: Paper, pod: dict[str, Any]) -> None:
        self._paper = paper
        self.name, self.uid = str(pod["metadata"]["name"]), str(pod["metadata"]["uid"])
        self.gate = Gate(self._dial)
        self._ip = str(pod["status"]["podIP"])
        self._folder = paper.folder / "pods" / self.uid
        self._folder.mkdir(parents=True)
        paper.work(self.name).mkdir(parents=True, exist_ok=True)
        token = self._folder / "token"
        token.write_text(paper.token(self.name, self.uid))
        self._socket = Path(paper.sockets.name, self.uid)
        self.process = subprocess.Popen(
            [agent_binary(), "--listen", f"unix:{self._socket}", "--sandbox-id", self.name,
             "--token-file", str(token), "--workdir", str(paper.work(self.name)), "--ignore-term"],
            env={"PATH": os.environ["PATH"], "HOME": str(self._folder)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._pidfd = os.pidfd_open(self.process.pid)

    async def begin(self) -> None:
        """Let it be reached at its pod's address, and see its end."""
        self._paper.loop.add_reader(self._pidfd, self._ended)
        await self.gate.open(self._ip, self._paper.agent_port)

    def _ended(self) -> None:
        self._paper.loop.remove_reader(self._pidfd)
        self._paper.tell_end(self)

    async def end(self) -> None:
        """As when its pod is gone."""
        self._paper.loop.remove_reader(self._pidfd)
        self.kill()
        os.close(self._pidfd)
        await self.gate.close()

    def led_to(self, other: Agent) -> None:
        """Whoever connects to it from now on meets the other."""
        self._socket = other._socket
        self.gate.break_all()

    def kill(self) -> None:
        """kill -9."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    async def _dial(self) -> Streams:
        return await asyncio.open_unix_connection(str(self._socket))


def _free_port() -> int:
    with socket.create_server(("", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def paper_cluster(folder: Path, settings: Settings = QUICK) -> Iterator[Paper]:
    """One that stands until it is left."""
    paper = Paper(folder, settings)
    thread = threading.Thread(target=paper.loop.run_forever, daemon=True)
    thread.start()
    try:
        paper.do(paper.open())
        yield paper
    finally:
        paper.do(paper.close())
        paper.loop.call_soon_threadsafe(paper.loop.stop)
        thread.join(GENEROUS_S)
        paper.loop.close()


def provider_options(paper: Paper, **options: Any) -> str:
    """Of a service over it, as YAML."""
    given = {"kubeconfig": str(paper.kubeconfig), "agent_port": paper.agent_port, "lease_s": 3.0, **options}
    return json.dumps({"provider": given, "service": {"drain_s": 5.0}})
