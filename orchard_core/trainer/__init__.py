"""Trainers: the contract."""
