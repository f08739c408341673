"""Commands forked from one process that has done their imports: `python -m tests.cli.nursery SOCKET`.

The imports of a command cost half a second, and the tests give a thousand commands. What is forked is a
process of its own, with its own arguments, environment, directory and files, and ends as the command does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import socket
import sys

import orchard_core.cli

_MAIN = "orchard_core.cli.main"
_LOADED = (
    "numpy",
    "pyarrow",
    "pyarrow.parquet",
    "pydantic",
    "typer._adapters",
    "orchard_core.datasets.store.writer",
)


def main(path: str) -> None:
    """Serve until standard input ends; returns in each command's process, when it is its turn to run."""
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for module in pkgutil.walk_packages(orchard_core.cli.__path__, "orchard_core.cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    sys.modules.pop(_MAIN)  # the command runs it anew, as `python -m` does
    gc.freeze()
    if request := _asked(path):
        _become(request)
        runpy.run_module(_MAIN, run_name="__main__", alter_sys=True)


def _asked(path: str) -> dict[str, object] | None:
    """What to run, in the process that is to run it; None once nobody is left to ask."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener,
        selectors.DefaultSelector() as selector,
    ):
        listener.bind(path)
        listener.listen(64)
        selector.register(sys.stdin, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        print("ready", flush=True)  # noqa: T201
        while all(key.fileobj is listener for key, _ in selector.select()):
            caller, _ = listener.accept()
            with caller:
                if os.fork() == 0:
                    listener.close()
                    return _in_child(caller)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    return None


def _in_child(caller: socket.socket) -> dict[str, object]:
    """Fork once more: this process waits and tells how the command ended, the other one becomes it."""
    asked, files, _, _ = socket.recv_fds(caller, 1 << 20, 3)
    while not asked.endswith(b"\n"):
        asked += caller.recv(1 << 20)
    command = os.fork()
    if command == 0:
        caller.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        request: dict[str, object] = json.loads(asked)
        return request
    for file in files:
        os.close(file)
    caller.sendall(f"{command}\n".encode())
    _, status = os.waitpid(command, 0)
    with contextlib.suppress(OSError):  # who asked has given up
        caller.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(request: dict[str, object]) -> None:
    environment, argv = request["environment"], request["argv"]
    assert isinstance(environment, dict)
    assert isinstance(argv, list)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(request["cwd"]))
    sys.argv[1:] = argv
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False), errors="backslashreplace", line_buffering=True  # noqa: SIM115
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
