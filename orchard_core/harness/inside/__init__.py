"""Running a program inside the sandbox as a harness."""
