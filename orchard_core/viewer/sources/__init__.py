"""What can be opened: a run, a matrix of runs, a dataset."""
