"""`python -m orchard_env.testing.cluster`."""

from orchard_env.testing.cluster.program import main

if __name__ == "__main__":
    main()
