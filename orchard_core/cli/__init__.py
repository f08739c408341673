"""The `orchard` command line: one command, one file. Commands import what is heavy inside themselves."""
