"""Started by the interpreter that has OpenHands, as a directory: `python -I program/`."""

# mypy: disable-error-code="import-not-found"
import os
import sys

sys.path.append(os.environ["ORCHARD_PYTHON_KIT"])

from inside.episode import main

main()
