"""A client of Ray's Jobs REST API (docs.ray.io, "Ray Jobs REST API"), no larger than what is needed here."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any

import msgspec

from proveout.domain.errors import UsageError

SECONDS = 10.0
SUBMIT_SECONDS = 60.0
TERMINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
HEADERS = "RAY_JOB_HEADERS"


class UnreachableError(Exception):
    """Nothing answers at the address, or something else than the Jobs API."""


class RefusedError(Exception):
    """The Jobs API answered that it will not."""


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """A job as Ray sees it; ``message`` is the first line of what it says."""

    status: str
    message: str = ""

    @property
    def terminal(self) -> bool:
        """Whether it will not change any more."""
        return self.status in TERMINAL


class Jobs:
    """The Jobs API at one address. Every call raises UnreachableError where it does not answer."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._headers = {"Content-Type": "application/json", **_headers()}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def version(self) -> str:
        """The version of Ray that answers."""
        return str(self._ask("GET", "/api/version").get("ray_version", ""))

    def submit(
        self, job: str, entrypoint: str, *, runtime_env: dict[str, Any], metadata: dict[str, str]
    ) -> None:
        """Start a job under an identifier of the caller's. Raises RefusedError where Ray does not take it."""
        body = {
            "submission_id": job,
            "entrypoint": entrypoint,
            "runtime_env": runtime_env,
            "metadata": metadata,
        }
        self._ask("POST", "/api/jobs/", body, seconds=SUBMIT_SECONDS)

    def state(self, job: str) -> JobState:
        """The job as it stands. Raises RefusedError where Ray does not know it (a head that was started again)."""
        found = self._ask("GET", f"/api/jobs/{job}")
        lines = str(found.get("message") or "").strip().splitlines()
        return JobState(status=str(found.get("status")), message=lines[0][:400] if lines else "")

    def stop(self, job: str) -> None:
        """Ask a job to stop; it gets SIGTERM and, after a while, SIGKILL."""
        self._ask("POST", f"/api/jobs/{job}/stop")

    def logs(self, job: str) -> str:
        """What the job printed."""
        return str(self._ask("GET", f"/api/jobs/{job}/logs").get("logs") or "")

    def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, seconds: float = SECONDS
    ) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked where the address was read
            self.address + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers=self._headers,
        )
        try:
            with self._opener.open(request, timeout=seconds) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read(4000).decode(errors="replace").strip().splitlines()
            if error.code >= 500 and method == "GET":
                raise UnreachableError(f"status {error.code}") from error
            raise RefusedError(said[-1] if said else f"status {error.code}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnreachableError(str(getattr(error, "reason", None) or error)) from error
        if not isinstance(found, dict):
            raise UnreachableError("its answer is not that of Ray's Jobs API")
        return found


def _headers() -> dict[str, str]:
    """Further headers, as Ray's own client takes them from the environment (a JSON object)."""
    text = os.environ.get(HEADERS, "")
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError(f"is no JSON: {error}", where=HEADERS) from error
    if not isinstance(found, dict):
        raise UsageError("is no JSON object", where=HEADERS)
    return {str(name): str(value) for name, value in found.items()}
