"""Harnesses x models x task sets, each combination a cell with an ordinary run directory of its own.

matrix.json        the plan: what all cells share, and the cells; replaced by rename when cells are added
lock               held by flock while the matrix is being run
cells/<slug>/      one run directory a cell; see `orchard_core.rollout.store`
"""
