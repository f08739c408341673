"""The tests of the core mirror its folders."""
