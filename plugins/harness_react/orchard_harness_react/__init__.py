"""The generic ReAct harness: think, call a tool, look at the result, until the task is submitted.

Read the files in this order: `harness` (the contract), `episode` (the loop), `native` and `text` (how calls
travel), `calls` (checking them), `own_tools` (bash and files), `chat` (the model).
"""

__version__ = "0.1.0"
