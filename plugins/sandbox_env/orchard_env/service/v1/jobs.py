"""Commands of v1: exec, jobs, patches."""

from __future__ import annotations

import time
import uuid

from starlette.requests import Request
from starlette.responses import Response

from orchard_core import ExecError
from orchard_env.service.http import answer, caller, owned_by, read_json, seconds
from orchard_env.service.job import Job
from orchard_env.service.jobs import Jobs, Order
from orchard_env.service.noting import note
from orchard_env.service.reach import reach
from orchard_env.service.seams import Scope
from orchard_env.service.services import Services
from orchard_env.service.v1.commands import command_of
from orchard_env.service.v1.models import ApplyPatch, ExecCommand
from orchard_env.service.v1.patching import script_of, why_not

_WAIT_S = 60.0


class JobRoutes:
    """Handlers over the parts of one service."""

    def __init__(self, services: Services, jobs: Jobs) -> None:
        self._services = services
        self._settings = services.settings
        self._jobs = jobs

    async def exec(self, request: Request) -> Response:
        """Run a command: answered at once, or with `wait` when it has ended."""
        entry = await reach(self._services, request, Scope.USE)
        tenant = caller(request, Scope.USE)
        asked = await read_json(request, ExecCommand, self._settings.body_mb << 20)
        until = time.monotonic() + self._settings.wait_s
        await entry.ready(self._settings.wait_s)
        order = Order(
            run_id=asked.exec_id or uuid.uuid4().hex,
            command=command_of(asked.command, login_shell=asked.login_shell),
            note=asked.command,
            timeout_s=asked.timeout_seconds,
            cwd=asked.cwd,
            env=asked.env,
        )
        note(self._services, request, "exec", entry.id, command=str(asked.command))
        wait_s = max(0.0, until - time.monotonic()) if asked.wait else 0.0
        job = await self._jobs.submit(entry, order, tenant, wait_s=wait_s)
        return answer(job.body() if asked.wait else {"job_id": job.id, "status": "queued"})

    async def get(self, request: Request) -> Response:
        """How a job stands."""
        return answer((await self._job(request, 0.0)).body())

    async def wait(self, request: Request) -> Response:
        """Wait for its end, and tell how it stands then or when the wait is over."""
        wait_s = seconds(request, "timeout", _WAIT_S, self._settings.wait_s)
        return answer((await self._job(request, wait_s)).body())

    async def kill(self, request: Request) -> Response:
        """End a job, or take it out of the queue."""
        owner = owned_by(caller(request, Scope.USE))
        return answer((await self._jobs.kill(request.path_params["job_id"], tenant=owner)).body())

    async def _job(self, request: Request, wait_s: float) -> Job:
        owner = owned_by(caller(request, Scope.READ))
        return await self._jobs.get(request.path_params["job_id"], tenant=owner, wait_s=wait_s)

    async def apply_patch(self, request: Request) -> Response:
        """Apply a patch inside, by the image's own git or patch: all of it or none."""
        entry = await reach(self._services, request, Scope.USE)
        tenant = caller(request, Scope.USE)
        asked = await read_json(request, ApplyPatch, self._settings.body_mb << 20)
        sandbox = await entry.ready(self._settings.wait_s)
        path = f"/tmp/.orchard-patch-{uuid.uuid4().hex}"  # noqa: S108 - inside, and nobody guesses it
        await sandbox.write(path, asked.patch.encode("utf-8", "surrogateescape"), mode=0o600)
        order = Order(
            run_id=uuid.uuid4().hex,
            command=script_of(asked.patch),
            note="apply_patch",
            timeout_s=asked.timeout_seconds,
            cwd=asked.cwd,
            env={"ORCHARD_PATCH": path},
        )
        note(self._services, request, "patch", entry.id)
        try:
            job = await self._jobs.submit(entry, order, tenant, wait_s=self._settings.wait_s)
        except ExecError:  # no shell, say: nothing ran that could take it away
            await sandbox.remove(path)
            raise
        return answer(_patched(job))


def _patched(job: Job) -> dict[str, object]:
    told = job.body()
    error = told["error"] or why_not(told["exit_code"])
    if error is None and job.status != "succeeded":
        error = "the patch does not apply" if not job.told.open else "the patch is still being applied"
    names = ("stdout", "stderr", "exit_code")
    return {"success": job.status == "succeeded", **{name: told[name] for name in names}, "error": error}
