"""For harnesses in Python that run beside the driver, in whatever interpreter: the standard library only,
3.10 or later. Orchard puts the directory above this package into ORCHARD_PYTHON_KIT:

    sys.path.append(os.environ["ORCHARD_PYTHON_KIT"])
    from orchard_program import Sandbox, read_task, write_result
"""

from orchard_program.command import Command
from orchard_program.mirror import mirror
from orchard_program.sandbox import Entry, Sandbox, SandboxRefused
from orchard_program.shell import Shell
from orchard_program.task import Model, Task, keep_file, read_model, read_task, write_result

__all__ = [
    "Command",
    "Entry",
    "Model",
    "Sandbox",
    "SandboxRefused",
    "Shell",
    "Task",
    "keep_file",
    "mirror",
    "read_model",
    "read_task",
    "write_result",
]
