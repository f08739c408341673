"""Contract suites: pytest classes that a plugin subclasses, giving one or two fixtures. A docstring of a test
says why the behaviour matters and what to mend."""
