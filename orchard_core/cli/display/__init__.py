"""What a user sees while a run goes on: a live screen on a terminal, plain lines anywhere else."""
