"""What every test of the provider `remote` needs."""

from __future__ import annotations

from ..service.conftest import isolation as isolation
