"""Scores: the contract and the verifier that runs a script in a fresh sandbox."""
