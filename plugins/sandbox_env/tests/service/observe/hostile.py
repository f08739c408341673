"""A state of a service whose every word came from somebody who means harm."""

from __future__ import annotations

from orchard_env.types.overview import FailureRow, Overview, QueueRow, SandboxRow, TenantRow

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\x1b]0;pwned\x07\u202e\u200b'\"&{{7*7}}"


def overview(rows: int = 3, evil: str = EVIL) -> Overview:
    """So many tenants and sandboxes."""
    return Overview(
        at=1.7e9,
        up_s=98765.0,
        version="0.1.0",
        provider=evil,
        draining=True,
        conditions=(f"a condition {evil}",),
        in_flight=1234,
        requests=1_234_567,
        created=4321,
        create_s=1234.5,
        execs=54321,
        timed=54000,
        overhead_s=99.9,
        pool_hits=93,
        pool_misses=7,
        tenants=tuple(
            TenantRow(
                tenant=f"{evil}{number}",
                pending=number,
                ready=1000,
                failed=1,
                cpu=2000.5,
                memory_gib=8000.25,
                execs=123456,
                cpu_hours=99999.123,
                used_cpu_hours=1.5,
                gib_hours=12345.678,
                usd=9876.54,
            )
            for number in range(rows)
        ),
        queues=(QueueRow(work=evil, running=1, waiting=2, refused=3),),
        failures=(FailureRow(reason=evil, count=5),),
        sandboxes=tuple(
            SandboxRow(
                id=f"{evil}{number}",
                tenant=evil,
                status="failed",
                image=evil * 20,
                cpu=2.0,
                memory_gib=8.0,
                age_s=100.0 * number,
                fault=evil,
            )
            for number in range(rows)
        ),
        sandboxes_known=rows,
    )
