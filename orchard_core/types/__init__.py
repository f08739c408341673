"""Frozen data that crosses borders; one noun a file. Import names from `orchard_core`."""
