"""A hostile program in a local sandbox behind a service: it is root there, and reaches nothing."""

from __future__ import annotations

import io
import json
import secrets
import socket
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from orchard_core import AgentSandbox

from ..service.running import GENEROUS_S, Running
from .conftest import made

HOSTS = (
    "127.0.0.1", "localhost", "localhost.", "127.1", "127.0.0.1.", "0", "0x7f000001", "2130706433",
    "0177.0.0.1", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "127.0.0.1.nip.io", "169.254.169.254",
    "0xa9fea9fe", "2852039166", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "fd00:ec2::254",
    "metadata.google.internal", "169.254.170.2", "100.100.100.200", "168.63.129.16", "10.0.0.1",
    "192.168.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%lo", "xn--lclhst-hya9a",
    "\u2460\u2461\u2466.0.0.1",
)  # fmt: skip
"""This machine, its networks and the metadata servers of clouds, as attackers write them."""

_DIRECT = """
import json, socket, sys
reached = []
for host, port in json.loads(sys.argv[1]):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            for family, _, _, _, at in socket.getaddrinfo(host, port, type=kind):
                with socket.socket(family, kind) as peer:
                    peer.settimeout(5)
                    peer.connect(at)
                    peer.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
                    if peer.recv(1): reached.append([host, port])
        except (OSError, UnicodeError):
            pass
print(json.dumps(reached))
"""
_PROXIED = """
import json, os, socket, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["http_proxy"])
told = []
for host, port in json.loads(sys.argv[1]):
    shown = f"[{host}]" if ":" in host else host
    for head in (f"CONNECT {shown}:{port} HTTP/1.1", f"GET http://{shown}:{port}/ HTTP/1.1"):
        with socket.create_connection((proxy.hostname, proxy.port), 30) as peer:
            peer.sendall(f"{head}\\r\\nHost: example.org\\r\\n\\r\\n".encode())
            told.append(peer.recv(100).split(b" ")[1].decode())
print(json.dumps(told))
"""
_NAMES = """
import socket, sys
for name in sys.argv[1:]:
    try: raise SystemExit(f"{name} is {socket.getaddrinfo(name, 80)}")
    except (OSError, UnicodeError): pass
query = bytes.fromhex("abcd01000001000000000000") + b"\\x06secret\\x07example\\x00\\x00\\x01\\x00\\x01"
for server in ("127.0.0.53", "8.8.8.8", "1.1.1.1", "10.96.0.10", "169.254.169.253", "2001:4860:4860::8888"):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(family, kind) as peer:
            peer.settimeout(5)
            try:
                peer.connect((server, 53)); peer.send(query); peer.recv(1)
            except OSError: continue
            raise SystemExit(f"{server} answers")
"""
_SECRETS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
told = {pid: open(f"/proc/{pid}/cmdline", "rb").read() for pid in {*pids} - {os.getpid()}}
agents = [pid for pid, words in told.items() if b"--sandbox-id" in words]
print(len(agents), "agents")
for pid in agents:
    for name in ("mem", "environ", "auxv", "maps", "stack", "fd/0", "fd/3", "root/", "cwd/", "map_files"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name.endswith(("/", "files")) else open(path, "rb").read(1)
            print("read", path)
        except OSError: pass
    for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
        if libc.ptrace(request, pid, 0, 0) == 0: print("traced", pid)
    into = ctypes.create_string_buffer(64)
    class Part(ctypes.Structure): _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    here, there = Part(ctypes.addressof(into), 64), Part(0x400000, 64)
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0: print("copied", pid)
    if hasattr(os, "pidfd_open"):
        try:
            fd = os.pidfd_open(pid)
            if libc.syscall(438, fd, 0, 0) >= 0: print("borrowed a file of", pid)
        except OSError: pass
"""


_SEARCH = """
import os, sys
mark = (sys.argv[1] + sys.argv[2]).encode()  # put together here: no command line holds it
pids = [name for name in os.listdir("/proc") if name.isdigit()]
places = [f"/proc/{pid}/{name}" for pid in pids for name in ("environ", "cmdline")]
for top in {*os.listdir("/")} - {"proc", "sys", "dev", "usr"}:
    for folder, _, names in os.walk(f"/{top}") if not os.path.islink(f"/{top}") else ():
        places += [f"{folder}/{name}" for name in names]
for place in places:
    try:
        if os.path.isfile(place) and mark in open(place, "rb").read(): print("found in", place)
    except OSError: pass
print("searched")
"""


@pytest.fixture
def reached() -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine, open to all its addresses as Redis would be, and what it was told."""
    seen: list[bytes] = []
    family, everywhere = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "")
    dual = family == socket.AF_INET6
    with socket.create_server((everywhere, 0), family=family, dualstack_ipv6=dual) as server:

        def serve() -> None:
            while True:
                try:
                    taken, _ = server.accept()
                except OSError:
                    return
                with taken:
                    seen.append(taken.recv(100))
                    taken.sendall(b"+PONG\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1]), seen
        server.shutdown(socket.SHUT_RDWR)


def run(service: Running, box: str, *command: str) -> str:
    """What a command writes."""
    with service.client() as client:
        asked = {"command": list(command), "timeout_s": GENEROUS_S}
        told = client.post(f"/v2/sandboxes/{box}/exec", json=asked).raise_for_status().json()
        assert told["exit_code"] == 0, told
        return str(told["stdout"]["data"])


def everywhere(service: Running, port: int) -> list[tuple[str, int]]:
    """Every way to write this machine, with the port of the service and another one."""
    own = socket.gethostbyname(socket.gethostname())
    ports = (port, urlsplit(service.url).port or 0)
    return [(host, each) for host in (*HOSTS, own) for each in ports]


def test_without_a_network_no_address_is_reached(
    shared: Running, box: str, reached: tuple[int, list[bytes]]
) -> None:
    port, seen = reached
    told = run(shared, box, "python3", "-c", _DIRECT, json.dumps(everywhere(shared, port)))
    assert json.loads(told) == []
    assert seen == []


@pytest.fixture(scope="module")
def outgoing(shared: Running) -> str:
    """A sandbox that may reach any public address."""
    return made(shared, network={"mode": "open"})


def test_the_way_out_leads_to_no_address_of_this_machine_however_it_is_written(
    shared: Running, outgoing: str, reached: tuple[int, list[bytes]]
) -> None:
    port, seen = reached
    targets = everywhere(shared, port)
    assert json.loads(run(shared, outgoing, "python3", "-c", _DIRECT, json.dumps(targets))) == []
    statuses = json.loads(run(shared, outgoing, "python3", "-c", _PROXIED, json.dumps(targets)))
    assert {*statuses} <= {"400", "403", "502"}
    assert seen == []


@pytest.mark.parametrize("network", ["none", "open"])
def test_no_name_is_resolved_inside(shared: Running, box: str, outgoing: str, network: str) -> None:
    """A query for a name carries data, whatever the answer is: there must be nobody to ask."""
    where = box if network == "none" else outgoing
    names = (
        "example.org",
        "secret.example.org",
        "metadata.google.internal",
        "kubernetes.default",
        "localhost.x",
    )
    assert run(shared, where, "python3", "-c", _NAMES, *names) == ""


def test_the_agents_token_is_not_to_be_had(shared: Running, box: str) -> None:
    """Neither its memory, its files nor its descriptors, though the program has its user's id."""
    assert run(shared, box, "python3", "-c", _SECRETS) == "1 agents\n"


def test_the_token_is_in_no_file_and_no_variable(shared: Running, box: str) -> None:
    entry = next(entry for entry in shared.services.fleet.known() if entry.id == box)
    assert isinstance(entry.sandbox, AgentSandbox)
    token = entry.sandbox._client.endpoint.token  # nobody is told of it, tests included
    assert run(shared, box, "python3", "-c", _SEARCH, token[:20], token[20:]) == "searched\n"


_LEAVE = """
import ctypes, os, socket, sys, time
mark = sys.argv[1].encode()
libc = ctypes.CDLL(None, use_errno=True)
for place in ("/dev/shm", "/tmp", "/var/tmp", "/run", "/workspace"):
    try: open(f"{place}/orchard-mark", "wb").write(mark)
    except OSError: pass
abstract = socket.socket(socket.AF_UNIX); abstract.bind(b"\\0orchard-mark"); abstract.listen()
libc.shmget(0x0a11ce, 4096, 0o1666); libc.msgget(0x0a11ce, 0o1666); libc.semget(0x0a11ce, 1, 0o1666)
server = socket.create_server(("", 4711))
print("left", flush=True); time.sleep(600)
"""
_FIND = """
import ctypes, os, socket
libc, found = ctypes.CDLL(None, use_errno=True), []
for place in ("/dev/shm", "/tmp", "/var/tmp", "/run", "/workspace"):
    if os.path.exists(f"{place}/orchard-mark"): found.append(place)
here = ("127.0.0.1", 4711)
for name, kind, at in (("abstract", socket.AF_UNIX, b"\\0orchard-mark"), ("port", socket.AF_INET, here)):
    try: socket.socket(kind).connect(at); found.append(name)
    except OSError: pass
for name, call in (("shm", lambda: libc.shmget(0x0a11ce, 0, 0)), ("msg", lambda: libc.msgget(0x0a11ce, 0)),
                   ("sem", lambda: libc.semget(0x0a11ce, 0, 0))):
    if call() >= 0: found.append(name)
print(found, sum(name.isdigit() for name in os.listdir("/proc")) < 20)
"""


def test_a_neighbour_leaves_nothing_that_is_found(shared: Running, box: str, neighbour: str) -> None:
    """No shared directory, memory, queue, semaphore, abstract socket, port or process."""
    stranger = shared.as_caller("theirs")
    with stranger.client() as client:
        asked = {"command": ["python3", "-c", _LEAVE, secrets.token_hex(8)], "id": "left"}
        client.post(f"/v2/sandboxes/{neighbour}/execs", json=asked).raise_for_status()
        while "left" not in client.get(f"/v2/sandboxes/{neighbour}/execs/left/logs").text:
            pass
    found = run(stranger, neighbour, "python3", "-c", _FIND)
    assert "abstract" in found, "the search finds what is there"
    assert "shm" in found
    assert run(shared, box, "python3", "-c", _FIND) == "[] True\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of this machine."""
    path = tmp_path / "secret"
    path.write_text("of the host")
    return path


def test_no_link_leads_a_read_or_a_write_out(shared: Running, box: str, secret: Path) -> None:
    links = {"link": secret, "up": "/proc/1/root", "folder": secret.parent, "top": "/"}
    for name, target in links.items():
        run(shared, box, "ln", "-sfn", str(target), f"/workspace/{name}")
    at = f"/v2/sandboxes/{box}"
    ways = (
        "link",
        "folder/secret",
        f"up{secret}",
        f"top{secret}",
        f"../../../../..{secret}",
        "../proc/1/cwd/x",
    )
    with shared.client() as client:
        for way in ways:
            told = client.get(f"{at}/files", params={"path": f"/workspace/{way}"})
            assert told.status_code in (403, 404), (way, told.text)
        for way in ways:
            client.put(f"{at}/files", params={"path": f"/workspace/{way}"}, content=b"mine")
        assert secret.read_text() == "of the host"
        tree = client.get(f"{at}/tree", params={"path": "/workspace"}).content
    with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
        assert b"of the host" not in tree
        assert {member.name for member in archive if member.issym()} >= {"link", "folder", "up", "top"}


def _archive(*members: tuple[str, bytes, dict[str, Any]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content, fields in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_no_archive_writes_out_of_its_directory(shared: Running, box: str, secret: Path) -> None:
    out = str(secret)
    odd = (
        _archive(("../../escaped", b"x", {})),
        _archive((out, b"x", {})),
        _archive(("a", b"", {"type": tarfile.SYMTYPE, "linkname": "/"}), ("a/escaped", b"x", {})),
        _archive(("b", b"", {"type": tarfile.LNKTYPE, "linkname": "../../etc/passwd"})),
        _archive(("c", b"", {"type": tarfile.LNKTYPE, "linkname": out})),
        _archive(("d", b"", {"type": tarfile.BLKTYPE, "devmajor": 8, "devminor": 0})),
    )
    with shared.client() as client:
        for archive in odd:
            told = client.put(f"/v2/sandboxes/{box}/tree", params={"path": "/workspace/in"}, content=archive)
            _refused(told)
    assert secret.read_text() == "of the host"
    assert run(shared, box, "sh", "-c", "ls /escaped /workspace/escaped 2>/dev/null; true") == ""


def _refused(answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["message"]
