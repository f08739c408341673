"""What programs upon Orchard Env are tested against."""
