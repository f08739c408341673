"""OpenHands' own file editor on files of the sandbox, by way of a local mirror of what it looks at."""

# mypy: disable-error-code="import-not-found", allow-subclassing-any
from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any, ClassVar

from openhands.sdk import TextContent
from openhands.tools.file_editor import FileEditorAction, FileEditorObservation, FileEditorTool
from openhands.tools.file_editor.impl import FileEditorExecutor
from orchard_program import Sandbox, SandboxRefused, mirror, read_task


class SandboxEditorExecutor(FileEditorExecutor):
    """Fetches the file, lets the stock editor work on the copy, and takes the bytes back."""

    def __init__(self, root: Path, work_dir: str) -> None:
        super().__init__(workspace_root=f"{root}{work_dir}")
        self._sandbox, self._root, self._work_dir = Sandbox.given(), root, work_dir

    def __call__(self, action: FileEditorAction, conversation: object = None) -> FileEditorObservation:
        """Run an action. What the sandbox or the local disk refuses is told to the model."""
        path = posixpath.join(self._work_dir, action.path)
        try:
            local = mirror(self._sandbox, path, self._root, depth=2, largest=self.editor._max_file_size)
            shown = str(local) if action.path.startswith("/") else action.path
            result = super().__call__(action.model_copy(update={"path": shown}), conversation)
            if action.command != "view" and not result.is_error:
                self._sandbox.write(path, local.read_bytes())
        except (SandboxRefused, OSError, ValueError) as error:
            text = f"Ran into {error} while working on {action.path}"
            result = FileEditorObservation.from_text(text=text, command=action.command, is_error=True)
        return result.model_copy(update={"content": [self._inside(part) for part in result.content]})

    def _inside(self, part: object) -> object:
        """The same, with the sandbox's own paths."""
        if isinstance(part, TextContent):
            return TextContent(text=part.text.replace(str(self._root), ""))
        return part


class SandboxEditorTool(FileEditorTool):
    """The stock tool with that executor, and the sandbox's working directory in its description."""

    name: ClassVar[str] = FileEditorTool.name

    @classmethod
    def create(cls, conv_state: Any) -> Any:
        """As the stock tool's."""
        (tool,) = super().create(conv_state)
        outside, inside = conv_state.workspace.working_dir, read_task().workdir
        executor = SandboxEditorExecutor(Path(outside).parent / "mirror", inside)
        description = tool.description.replace(outside, inside)
        return [tool.model_copy(update={"description": description, "executor": executor})]
