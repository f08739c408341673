"""`orchard check`: the contract suites on an installed plugin."""
