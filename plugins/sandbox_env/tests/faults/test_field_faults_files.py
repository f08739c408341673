"""The faults of the field, 14 to 16: files. Each asked of both contracts of a service over local boxes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from orchard_core import ArchiveEscape
from orchard_core.sandbox.agent import unpack
from orchard_core.testing.suites.sandbox.archives import device, escapes

from .field import CONTRACTS, V1, V2, Contract, busybox_image
from .orchestrators import Orchestrator

GIGABYTE = 1 << 30
BLOCK = bytes(range(256)) * 4096
PATIENT_S = 300.0


@pytest.fixture(scope="module")
def small(service: Orchestrator, folder: Path) -> str:
    """A sandbox with BusyBox alone."""
    return V1(service.client).make(busybox_image(folder))


@pytest.fixture(params=CONTRACTS)
def on(request: pytest.FixtureRequest, service: Orchestrator) -> Contract:
    """The contract that the case is asked of."""
    return CONTRACTS[request.param](service.client)


def memory(service: Orchestrator) -> int:
    """Bytes of the service that are its own, now."""
    told = Path(f"/proc/{service.process.pid}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", told)
    assert found is not None
    return int(found[1]) << 10


class Glances:
    """Asks for the service's health, and looks at its memory, for as long as it is entered."""

    def __init__(self, service: Orchestrator) -> None:
        self._service = service
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.answers: list[int] = []
        self.most = 0

    def _look(self) -> None:
        with httpx.Client(base_url=self._service.url, timeout=PATIENT_S) as client:
            while not self._over.is_set():
                self.answers.append(client.get("/health").status_code)
                self.most = max(self.most, memory(self._service))
                self._over.wait(0.05)

    def __enter__(self) -> Glances:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def moved(service: Orchestrator, box: str, size: int) -> Glances:
    """A file of that size went up and came down, whole, in pieces; what was seen meanwhile."""
    sent, got = hashlib.sha256(), hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for _ in range(size // len(BLOCK)):
            sent.update(BLOCK)
            yield BLOCK

    path = {"path": "/workspace/large"}
    with Glances(service) as seen, httpx.Client(base_url=service.url, timeout=PATIENT_S) as client:
        done = client.put(f"/v2/sandboxes/{box}/files", params=path, content=pieces())
        assert done.json() == {"size": size}
        with client.stream("GET", f"/v2/sandboxes/{box}/files", params=path) as answer:
            assert answer.status_code == 200
            for piece in answer.iter_bytes(1 << 20):
                got.update(piece)
        client.delete(f"/v2/sandboxes/{box}/files", params=path).raise_for_status()
    assert got.digest() == sent.digest()
    return seen


@pytest.mark.parametrize(
    "size", [64 << 20, pytest.param(GIGABYTE, marks=pytest.mark.nightly)], ids=["64 MiB", "1 GiB"]
)
def test_fault_14_a_large_file_is_streamed_both_ways_in_bounded_memory_while_health_answers(
    service: Orchestrator, box: str, size: int
) -> None:
    before = memory(service)
    seen = moved(service, box, size)
    assert set(seen.answers) == {200}
    assert seen.most - before < 48 << 20


def test_fault_14_a_range_is_read_without_the_rest(service: Orchestrator, box: str) -> None:
    on = V2(service.client)
    on.write(box, "/workspace/ranged", bytes(range(256)) * 1000).raise_for_status()
    at, path = f"/v2/sandboxes/{box}/files", {"path": "/workspace/ranged"}
    for asked, told in (("bytes=255-258", b"\xff\x00\x01\x02"), ("bytes=-2", b"\xfe\xff")):
        answer = service.client.get(at, params=path, headers={"Range": asked})
        assert (answer.status_code, answer.content) == (206, told)


def test_fault_14_what_is_too_large_for_one_answer_is_refused_before_it_is_held(
    service: Orchestrator, box: str
) -> None:
    V1(service.client).run(box, "truncate -s 2G /workspace/huge")
    before = memory(service)
    with Glances(service) as seen:
        answer = service.client.get(f"/sandboxes/{box}/files", params={"path": "/workspace/huge"})
    assert (answer.status_code, answer.json()["error"]) == (413, "BodyTooLarge")
    assert "/v2/" in answer.json()["hint"]
    assert seen.most - before < 128 << 20


ODD = ("a b", "q'\"$(id)`", "new\nline", "é", "-rf", "*", "back\\slash", "%2e%2e", "tab\t")


def test_fault_15_no_odd_name_and_no_broken_link_breaks_a_listing(on: Contract, box: str) -> None:
    odd = f"/workspace/odd-{on.at.count('/')}"
    made = on.run(box, ["python3", "-c", MAKE, odd, *ODD])
    assert made.exit_code == 0, made.stderr
    told = on.list(box, odd)
    links = {b"broken", b"loop", b"out"}
    assert set(told) == {*(name.encode() for name in ODD), b"not\xffutf8", b"pipe", b"sub", *links}
    assert told[b"sub"] == "directory"
    assert told[b"a b"] == "file"
    for name in ODD:
        assert on.read(box, f"{odd}/{name}") == b"in " + name.encode()


MAKE = """
import os, sys
os.makedirs(sys.argv[1] + "/sub"); os.chdir(sys.argv[1])
for name in sys.argv[2:]:
    open(name, "w").write("in " + name)
open(b"not\\xffutf8", "w").close()
os.mkfifo("pipe")
os.symlink("nowhere", "broken"); os.symlink("loop", "loop"); os.symlink("/etc", "out")
"""


def test_fault_15_an_odd_name_can_be_written_read_and_run_in(on: Contract, box: str) -> None:
    for number, name in enumerate(ODD):
        path = f"/workspace/made-{on.at.count('/')}/{name}/{name}"
        on.write(box, path, b"%d" % number).raise_for_status()
        assert on.read(box, path) == b"%d" % number
        ran = on.run(box, ["cat", name], cwd=path.rpartition("/")[0])
        assert (ran.exit_code, ran.stdout) == (0, b"%d" % number) if name != "-rf" else ran.exit_code != 0


OUTSIDE = "/workspace/guarded"


@pytest.fixture
def guarded(service: Orchestrator, box: str) -> Iterator[Contract]:
    """A directory with a target in it, outside of which nothing changes."""
    on = V2(service.client)
    script = f"rm -rf {OUTSIDE}; mkdir -p {OUTSIDE}/target; cd {OUTSIDE}; echo old > victim"
    assert on.run(box, script).exit_code == 0
    yield on
    assert set(on.list(box, OUTSIDE)) == {b"target", b"victim"}
    assert on.read(box, f"{OUTSIDE}/victim") == b"old\n"
    assert on.run(box, ["stat", "-c", "%h", f"{OUTSIDE}/victim"]).stdout == b"1\n"


# A link that makes way for no file is made last, where by then a directory stands.
IN_OTHER_WORDS = {"chain of links": (409, "FileExists"), "device": (422, "FileError")}


@pytest.mark.parametrize("kind", [*escapes(OUTSIDE), "device"])
def test_fault_16_an_archive_that_leaves_its_directory_is_refused_on_its_way_in(
    guarded: Contract, box: str, kind: str
) -> None:
    packed = {**escapes(OUTSIDE), "device": device()}[kind]
    at = {"path": f"{OUTSIDE}/target"}
    answer = guarded.client.put(f"/v2/sandboxes/{box}/tree", params=at, content=packed)
    wanted = IN_OTHER_WORDS.get(kind, (422, "ArchiveEscape"))
    assert (answer.status_code, answer.json()["error"]) == wanted
    assert answer.json()["message"]


def test_fault_16_nor_does_one_go_through_a_link_that_is_there_already(guarded: Contract, box: str) -> None:
    assert guarded.run(box, f"ln -s .. {OUTSIDE}/target/door").exit_code == 0
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo("door/escaped")
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))
    at = {"path": f"{OUTSIDE}/target"}
    answer = guarded.client.put(f"/v2/sandboxes/{box}/tree", params=at, content=packed.getvalue())
    assert (answer.status_code, answer.json()["error"]) == (422, "ArchiveEscape")


LEADING_OUT = {
    "a link up": "ln -s ../victim l",
    "a link to a place of ours": "ln -s /etc/passwd l",
    "a chain": "mkdir a; ln -s .. a/up; ln -s a/up/.. l",
}


@pytest.mark.parametrize("script", LEADING_OUT.values(), ids=LEADING_OUT)
async def test_fault_16_an_archive_from_inside_leaves_no_directory_of_ours(
    guarded: Contract, box: str, tmp_path: Path, script: str
) -> None:
    assert guarded.run(box, f"cd {OUTSIDE}/target; echo in > f; {script}").exit_code == 0
    told = guarded.client.get(f"/v2/sandboxes/{box}/tree", params={"path": f"{OUTSIDE}/target"})
    with tarfile.open(fileobj=io.BytesIO(told.raise_for_status().content)) as tar:
        for member in tar:
            assert not member.name.startswith("/")
            assert ".." not in member.name.split("/")
            assert member.isfile() or member.isdir() or member.issym()
    with pytest.raises(ArchiveEscape):
        await asyncio.to_thread(unpack, io.BytesIO(told.content), tmp_path)


def patch_of(*names: str) -> str:
    """One that makes each of these files."""
    return "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+escaped\n" for name in names)


CHANGES_VICTIM = "--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-old\n+changed\n"
PATCHES = {
    "dot dot": patch_of("../escaped"),
    "hidden dot dot": patch_of("a/../../escaped"),
    "a good file first": patch_of("good", "../escaped"),
    "dot dot to what is there": CHANGES_VICTIM % ("../victim", "../victim"),
    "a link that is there": patch_of("door/escaped"),
    "a link to what is there": CHANGES_VICTIM % ("door/victim", "door/victim"),
    "a link that it makes": (
        "diff --git a/new b/new\nnew file mode 120000\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+..\n"
        "\\ No newline at end of file\n" + patch_of("new/escaped")
    ),
}


@pytest.mark.parametrize("image", ["git", "busybox"])
@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_fault_16_a_patch_of_v1_that_leaves_its_directory_is_refused_whole(
    service: Orchestrator, box: str, small: str, patch: str, image: str
) -> None:
    on, where = V1(service.client), {"git": box, "busybox": small}[image]
    script = (
        f"rm -rf {OUTSIDE}; mkdir -p {OUTSIDE}/target; cd {OUTSIDE}; echo old > victim; ln -s .. target/door"
    )
    assert on.run(where, script).exit_code == 0
    body = {"patch": patch, "cwd": f"{OUTSIDE}/target"}
    told = service.client.post(f"/sandboxes/{where}/apply_patch", json=body).raise_for_status().json()
    assert (told["success"], bool(told["error"])) == (False, True), told
    assert told["exit_code"] != 0
    assert set(on.list(where, OUTSIDE)) == {b"target", b"victim"}
    assert on.read(where, f"{OUTSIDE}/victim") == b"old\n"
    assert set(on.list(where, f"{OUTSIDE}/target")) == {b"door"}


@pytest.mark.parametrize("image", ["git", "busybox"])
def test_fault_16_a_patch_that_stays_inside_is_applied(
    service: Orchestrator, box: str, small: str, image: str
) -> None:
    on, where = V1(service.client), {"git": box, "busybox": small}[image]
    script = "rm -rf /workspace/p; mkdir -p /workspace/p/sub; echo old > /workspace/p/sub/f"
    assert on.run(where, script).exit_code == 0
    patch = CHANGES_VICTIM % ("sub/f", "sub/f") + patch_of("made")
    body = {"patch": patch, "cwd": "/workspace/p"}
    told = service.client.post(f"/sandboxes/{where}/apply_patch", json=body).raise_for_status().json()
    assert (told["success"], told["error"]) == (True, None), told
    assert on.read(where, "/workspace/p/sub/f") == b"changed\n"
    assert on.read(where, "/workspace/p/made") == b"escaped\n"
    assert not [name for name in on.list(where, "/tmp") if b"patch" in name]
