"""Files through the SDK."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from orchard_env import SandboxInstance

from orchard_core import FileMissing, OrchardError


def test_bytes_go_in_and_come_out_exactly(sandbox: SandboxInstance) -> None:
    data = bytes(range(256)) * 100
    written = sandbox.upload_content(data, "/workspace/bytes")
    assert written["success"]
    assert written["size"] == len(data)
    assert sandbox.download_content("/workspace/bytes") == data


def test_a_large_file_is_streamed_both_ways(sandbox: SandboxInstance, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 40  # larger than what the service takes as base64
    (tmp_path / "up").write_bytes(data)
    assert sandbox.upload_file(str(tmp_path / "up"), "/workspace/large")["size"] == len(data)
    said = sandbox.exec("sha256sum < large").stdout.split()[0]
    assert said == hashlib.sha256(data).hexdigest()
    assert sandbox.download_file("/workspace/large", tmp_path / "down") == len(data)
    assert (tmp_path / "down").read_bytes() == data


def test_a_listing_has_names_types_and_sizes(sandbox: SandboxInstance) -> None:
    sandbox.exec("mkdir -p listed/inner && printf 12345 > 'listed/a b'")
    files = {entry["name"]: entry for entry in sandbox.list_files("/workspace/listed")}
    assert (files["a b"]["type"], files["a b"]["size"]) == ("file", 5)
    assert files["inner"]["type"] == "directory"


def test_a_missing_file_is_a_typed_error_and_leaves_nothing(sandbox: SandboxInstance, tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        sandbox.download_content("/workspace/none")
    with pytest.raises(FileMissing):
        sandbox.download_file("/workspace/none", tmp_path / "none")
    with pytest.raises(FileMissing):
        sandbox.upload_file(tmp_path / "none", "/workspace/x")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_no_file(sandbox: SandboxInstance, tmp_path: Path) -> None:
    with pytest.raises(OrchardError):
        sandbox.download_file("/workspace", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
