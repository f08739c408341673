"""Plugins with one deliberate fault each, under the suite that must catch it.

A class names in `caught_by` the test that has to fail for it. None of it is collected by an ordinary run.
"""
