"""`orchard doctor`: are the tasks of a task set sound?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    taskset: Annotated[str, typer.Argument(help="Task set, such as workbench:16.", show_default=False)],
) -> None:
    """Run every task with its known solution and with an agent that does nothing."""
