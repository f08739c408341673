"""Python environments made once, whoever asks and whoever dies."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from pathlib import Path

import pytest

from orchard_core.errors import ConfigError
from orchard_core.harness.external.interpreter import managed_python

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
ASK = f"""
import asyncio, sys
from pathlib import Path
from orchard_core.harness.external.interpreter import managed_python
asked = managed_python("demo", Path(sys.argv[1]), python="{PYTHON}", size="", variable="UNSET")
print(asyncio.run(asked))
"""


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that asks for one small wheel on this disk, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheel = tmp_path / "demo_thing-1.0-py3-none-any.whl"
    info = "demo_thing-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("demo_thing.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: demo-thing\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    path = tmp_path / "requirements.txt"
    path.write_text(f"demo-thing @ {wheel.as_uri()}\n")
    return path


async def said(*argv: str) -> str:
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().strip()


async def test_processes_that_ask_together_get_one_that_works(requirements: Path, tmp_path: Path) -> None:
    asked = await asyncio.gather(*(said(sys.executable, "-c", ASK, str(requirements)) for _ in range(3)))
    assert len(set(asked)) == 1
    assert await said(asked[0], "-I", "-c", "import demo_thing; print(demo_thing.ANSWER)") == "42"
    made = [path for path in (tmp_path / "cache" / "orchard").iterdir() if path.is_dir()]
    assert len(made) == 1


async def test_what_a_killed_process_left_is_gone_on_with(requirements: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ASK, str(requirements)), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    assert b"making demo's Python environment" in await process.stderr.readline()
    process.kill()
    await process.wait()
    python = await said(sys.executable, "-c", ASK, str(requirements))
    assert await said(python, "-I", "-c", "import demo_thing; print(demo_thing.ANSWER)") == "42"


async def test_one_whose_base_is_gone_is_made_anew(requirements: Path) -> None:
    python = await managed_python("demo", requirements, python=PYTHON, size="", variable="UNSET_VARIABLE")
    python.unlink()
    python.symlink_to("/no/such/python")
    again = await managed_python("demo", requirements, python=PYTHON, size="", variable="UNSET_VARIABLE")
    assert await said(str(again), "-I", "-c", "import demo_thing; print(demo_thing.ANSWER)") == "42"


async def test_a_pyenv_that_cannot_be_read_is_passed_over(
    requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as root's, which `su` leaves in the environment; here one whose path no system takes."""
    monkeypatch.setenv("PYENV_ROOT", "/" + "x" * 300)
    python = await managed_python("demo", requirements, python=PYTHON, size="", variable="UNSET_VARIABLE")
    assert await said(str(python), "-I", "-c", "import demo_thing; print(demo_thing.ANSWER)") == "42"


async def test_one_of_your_own_is_taken(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_PYTHON", sys.executable)
    given = await managed_python("demo", requirements, python=PYTHON, size="", variable="DEMO_PYTHON")
    assert given == Path(sys.executable)
    monkeypatch.setenv("DEMO_PYTHON", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="which is no program"):
        await managed_python("demo", requirements, python=PYTHON, size="", variable="DEMO_PYTHON")


async def test_one_that_cannot_be_made_is_an_error_in_uvs_words(requirements: Path, tmp_path: Path) -> None:
    requirements.write_text(f"demo-thing @ {(tmp_path / 'gone-1.0-py3-none-any.whl').as_uri()}\n")
    with pytest.raises(ConfigError, match="uv pip sync failed"):
        await managed_python("demo", requirements, python=PYTHON, size="", variable="UNSET_VARIABLE")
    assert not [
        path for path in (tmp_path / "cache" / "orchard").glob("demo-*/bin") if "unf" not in str(path)
    ]
