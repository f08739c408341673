"""The columns of the published microsoft/Orchard data, exactly."""
