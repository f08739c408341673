"""`/v2`: what the published contract lacks."""
