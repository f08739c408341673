"""Isolated places for an agent to act in: the contract, the in-sandbox agent's client, built-in providers."""
