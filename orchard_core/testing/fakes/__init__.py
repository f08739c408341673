"""Fakes that honour the contract suites, for unit tests that need no isolation. One noun a file."""
