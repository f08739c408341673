"""From rollouts to a training set: rows, storage, mixing, formats, credit."""
