"""Leaks: rows of a dataset whose task stands in a benchmark that is to stay unseen.

report.py       Leak, LeakReport, LeakSettings
benchmark.py    a named set of tasks, from a task set, a dataset or a file
ngrams.py       how much of each of the benchmark's texts stands in another text
check.py        LeakCheck: one task or conversation at a time; check_leaks over rows
"""
