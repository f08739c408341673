"""ATIF, the trajectory format of Harbor."""
