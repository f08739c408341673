"""The model gateway: between every harness and every model, recording."""
