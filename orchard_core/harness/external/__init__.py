"""Running a program on this machine, beside the driver, as a harness; in any language.

Read `environment` (what a program gets), `result` (what it gives), `supervisor` (why nothing of it stays).
"""
