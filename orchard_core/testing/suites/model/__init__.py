"""The contract suites of upstreams and models."""
