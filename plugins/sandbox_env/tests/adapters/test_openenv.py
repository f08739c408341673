"""OpenEnv, the real package, with servers in the sandboxes of a real service."""

from __future__ import annotations

import shutil
import socket

import pytest

from .environments import PROGRAMS, Framework

pytestmark = pytest.mark.slow


def free_port() -> int:
    """One that nobody listens on: the provider process has no ports of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_an_environment_is_served_from_a_sandbox_and_stepped_through(openenv: Framework) -> None:
    project = openenv.scratch / "counter"
    project.mkdir()
    shutil.copy(PROGRAMS / "counter.py", project)
    (project / "openenv.yaml").write_text("spec_version: 1\nname: counter\napp: counter:app\nport: 8000\n")
    told = openenv.tell("openenv_steps.py", str(project), str(free_port()))
    assert told["episode"] == [0, 40, False, 42, True, 2]
    assert "no openenv.yaml that names an app was found" in told["no app"]
    assert "the server ended with exit code 3: broken" in told["ended"]
    assert "no/such:image" in told["no image"]
    assert openenv.standing() == [], "one was not stopped, and its process has ended"
