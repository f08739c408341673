"""Files and trees of v2, streamed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

import httpx
import pytest


@pytest.fixture
def at(sandbox: str) -> str:
    """The path of the module's sandbox."""
    return f"/v2/sandboxes/{sandbox}"


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def link(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


def test_a_file_is_written_read_in_ranges_moved_and_removed(client: httpx.Client, at: str) -> None:
    path = {"path": "/workspace/d/f"}
    assert client.put(f"{at}/files", params=path, content=b"0123456789").json() == {"size": 10}
    assert client.get(f"{at}/files", params=path).content == b"0123456789"
    part = client.get(f"{at}/files", params=path, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    last = client.get(f"{at}/files", params=path, headers={"Range": "bytes=-3"})
    assert last.content == b"789"
    beyond = client.get(f"{at}/files", params=path, headers={"Range": "bytes=50-"})
    assert (beyond.status_code, beyond.json()["error"]) == (416, "RangeRefused")
    moved = {"from": "/workspace/d/f", "to": "/workspace/g"}
    assert client.post(f"{at}/files/move", params=moved).json() == {"moved": True}
    assert client.get(f"{at}/files/stat", params={"path": "/workspace/g"}).json()["size"] == 10
    client.delete(f"{at}/files", params={"path": "/workspace/d", "recursive": True}).raise_for_status()
    assert client.get(f"{at}/files/stat", params={"path": "/workspace/d"}).json()["error"] == "FileMissing"


def test_a_body_in_chunks_is_written_whole(client: httpx.Client, at: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield from (b"x" * 100_000 for _ in range(30))

    answer = client.put(f"{at}/files", params={"path": "/workspace/chunks"}, content=pieces())
    assert answer.json() == {"size": 3_000_000}


def test_a_listing_survives_odd_names_and_broken_links(client: httpx.Client, at: str) -> None:
    command = (
        "mkdir -p /workspace/odd; cd /workspace/odd; ln -s nowhere broken; "
        'touch "a b" "$(printf \'l\\nn\')" "$(printf \'n\\377\')"'
    )
    client.post(f"{at}/exec", json={"command": command})
    found = client.get(f"{at}/files/list", params={"path": "/workspace/odd"}).json()["entries"]
    assert [entry["name"] for entry in found] == ["a b", "broken", "l\nn", "n�"]
    assert found[1]["broken"]
    assert found[3]["path_b64"] is not None
    read = client.get(f"{at}/files?path=/workspace/odd/n%FF")
    assert (read.status_code, read.content) == (200, b"")
    few = client.get(f"{at}/files/list", params={"path": "/workspace/odd", "limit": 2}).json()
    assert (len(few["entries"]), few["truncated"]) == (2, True)


def test_a_tree_goes_in_and_comes_out(client: httpx.Client, at: str) -> None:
    packed = archive((tarfile.TarInfo("a/b"), b"deep"), (link("a/l", "b"), b""))
    done = client.put(f"{at}/tree", params={"path": "/workspace/tree"}, content=packed)
    assert done.json()["bytes"] == 4
    back = client.get(f"{at}/tree", params={"path": "/workspace/tree"})
    with tarfile.open(fileobj=io.BytesIO(back.content)) as tar:
        assert {member.name.removeprefix("./").rstrip("/") for member in tar} >= {"a/b", "a/l"}


@pytest.mark.parametrize(
    "packed",
    [
        archive((tarfile.TarInfo("../out"), b"x")),
        archive((tarfile.TarInfo("/etc/out"), b"x")),
        archive((link("l", "/etc"), b""), (tarfile.TarInfo("l/out"), b"x")),
    ],
    ids=["dots", "absolute", "link"],
)
def test_an_archive_that_leaves_its_directory_is_refused(
    client: httpx.Client, at: str, packed: bytes
) -> None:
    answer = client.put(f"{at}/tree", params={"path": "/workspace/escape"}, content=packed)
    assert (answer.status_code, answer.json()["error"]) == (422, "ArchiveEscape")


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "/files", "path=relative", 422),
        ("GET", "/files", "", 422),
        ("GET", "/files", "path=/a&path=/b", 422),
        ("GET", "/files", "path=/a%00b", 422),
        ("GET", "/files", "path=/" + "a" * 300, 422),
        ("GET", "/files", "path=/workspace", 422),
        ("PUT", "/files", "path=/workspace", 422),
        ("PUT", "/files", "path=/workspace/x&mode=9", 422),
        ("GET", "/files", "path=/workspace&user=%00", 422),
        ("DELETE", "/files", "path=/", None),
        ("POST", "/files/move", "from=/nope&to=/workspace/x", 404),
        ("GET", "/tree", "path=/etc/passwd", 422),
        ("GET", "/files/list", "path=/etc/passwd", 422),
        ("GET", "/files", "path=/proc/1/mem", None),
    ],
)
def test_a_path_that_cannot_be_is_refused_with_words(
    client: httpx.Client, at: str, method: str, path: str, query: str, status: int | None
) -> None:
    answer = client.request(method, f"{at}{path}?{query}")
    assert 400 <= answer.status_code < 500, answer.text
    assert status in (None, answer.status_code), answer.text
    assert answer.json()["message"]
