"""What every test here shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("orchard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("orchard")
