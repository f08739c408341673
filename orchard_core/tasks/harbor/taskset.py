"""The `harbor` task set: directories in, tasks out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchard_core.errors import TaskInvalid, TaskSetNotFound
from orchard_core.reward.contract import Reward
from orchard_core.reward.script import ScriptReward, VerifierScript
from orchard_core.sandbox.contract import Sandbox
from orchard_core.tasks.contract import Tool
from orchard_core.tasks.harbor.config import HarborConfig
from orchard_core.tasks.harbor.read import HarborTask, read_task
from orchard_core.tasks.harbor.scan import printable
from orchard_core.tasks.harbor.session import prepared
from orchard_core.tasks.harbor.solve import solution_of
from orchard_core.types.sandbox import FileInput, ImageRef, Mount, SandboxSpec
from orchard_core.types.task import Solution, Task


class HarborTaskSet:
    """Reads task directories once, when they are first asked for.

    `mounts`, `files` and `env` are added to every sandbox, and `image` replaces the host's files where a
    task names no image. They come from the program that makes the object, never from a task file: what of
    this machine is shown inside is not for a task to say.
    """

    def __init__(
        self,
        config: HarborConfig,
        *,
        name: str = "",
        mounts: tuple[Mount, ...] = (),
        files: tuple[FileInput, ...] = (),
        env: Mapping[str, str] | None = None,
        image: ImageRef | None = None,
    ):
        self._config = config
        self._name = name or f"harbor:{config.path}"
        self._added = {"mounts": mounts, "files": files}
        self._env = dict(env or {})
        self._image = image
        self._found: dict[str, HarborTask] | None = None
        self._problems: list[str] = []

    @property
    def name(self) -> str:
        """As the user named it."""
        return self._name

    def tasks(self) -> Iterable[Task]:
        """The tasks by directory name. Raises TaskSetNotFound when the path holds none at all."""
        return [found.task for found in self._read().values()]

    def problems(self) -> Sequence[str]:
        """What was left out or ignored, with the task's name in front."""
        self._read()
        return tuple(self._problems)

    def directory(self, task: Task) -> Path:
        """The task's directory on this machine."""
        return self._of(task).root

    def spec(self, task: Task) -> SandboxSpec:
        """The sandbox the task needs."""
        spec = self._of(task).spec
        image = self._image if self._image and spec.image.kind == "host" else spec.image
        return spec.model_copy(update={**self._added, "image": image, "env": {**self._env, **spec.env}})

    def session(self, task: Task, sandbox: Sandbox) -> AbstractAsyncContextManager[Sequence[Tool]]:
        """Upload the task's files and run its set-up script inside; it brings no tools."""
        return prepared(self._of(task), sandbox)

    def reward(self, task: Task) -> Reward:
        """Its tests."""
        found = self._of(task)
        script = VerifierScript(
            directory=found.root / "tests",
            env=found.verifier_env,
            user=found.toml.verifier.user,
            digest=task.digest,
            score_range=found.toml.orchard.reward_range,
        )
        spec = self.spec(task)
        if found.toml.verifier.user is not None:
            spec = spec.model_copy(update={"user": found.toml.verifier.user})
        return ScriptReward(script, spec, verify_in=task.verify_in)

    def solution(self, task: Task) -> Solution | None:
        """The known solution. Raises TaskInvalid when it cannot be played as commands."""
        return solution_of(self._of(task))

    def _of(self, task: Task) -> HarborTask:
        found = self._read().get(task.id)
        if found is None:
            raise TaskInvalid(f"{self._name} has no task {task.id!r}", hint="orchard tasks list shows them")
        return found

    def _read(self) -> dict[str, HarborTask]:
        if self._found is None:
            self._problems.clear()
            self._found = {found.task.id: found for found in self._each()}
        return self._found

    def _each(self) -> Iterator[HarborTask]:
        for directory in task_directories(self._config.path):
            try:
                found = read_task(directory, self._name, self._config)
            except TaskInvalid as error:
                hint = f" ({error.hint})" if error.hint else ""
                self._problems.append(f"{printable(directory.name)}: left out: {error.message}{hint}")
                continue
            self._problems += [f"{directory.name}: {remark}" for remark in found.remarks]
            yield found


def task_directories(path: Path) -> list[Path]:
    """The task directories at `path`, sorted: itself, or those right below it.

    Raises TaskSetNotFound when there is none.
    """
    root = path.expanduser().absolute()
    if (root / "task.toml").is_file():
        return [root.resolve()]
    if not root.is_dir():
        raise TaskSetNotFound(f"{path} is not a directory", hint="give a directory of task directories")
    found = sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith("."))
    if not any((child / "task.toml").is_file() for child in found):
        raise TaskSetNotFound(
            f"{path} holds no task: no directory in it has a task.toml",
            hint="give a directory of task directories, or one task directory",
        )
    return found


def open_harbor(config: HarborConfig) -> HarborTaskSet:
    """The factory behind `harbor:PATH`."""
    return HarborTaskSet(config)
