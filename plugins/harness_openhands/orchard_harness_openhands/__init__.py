"""The OpenHands software-agent-sdk as a harness.

`harness` starts `program/`, which runs in an interpreter of its own that has OpenHands (`requirements.txt`);
`events` reads the event logs that it writes.
"""

__version__ = "0.1.0"
