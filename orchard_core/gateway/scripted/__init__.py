"""Models that follow a script: for tests, demonstrations and checking task sets.

`scripted` answers from a list, a callable or a JSONL file; `oracle` plays a task's known solution through
whatever shell the harness offers; `noisy-oracle` does the same with mistakes. All of them are free, keep
no state between calls (what was already played is read off the request), and speak chat completions.
"""

from orchard_core.gateway.scripted.config import NoisyOracleConfig, OracleConfig, ScriptedConfig
from orchard_core.gateway.scripted.conversation import Conversation
from orchard_core.gateway.scripted.oracle import NoisyOracleModel, OracleModel
from orchard_core.gateway.scripted.replies import ScriptedModel, from_file
from orchard_core.gateway.scripted.reply import Reply, ReplyCall

__all__ = [
    "Conversation",
    "NoisyOracleConfig",
    "NoisyOracleModel",
    "OracleConfig",
    "OracleModel",
    "Reply",
    "ReplyCall",
    "ScriptedConfig",
    "ScriptedModel",
    "from_file",
]
