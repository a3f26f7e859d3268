"""Fetches a model from the hub once, before many workers would race for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from proveout.assets import offline, snapshot
from proveout.domain.errors import BlockedError, UsageError


def fetch(model: str, to: Path, env: Mapping[str, str], revision: str | None = None) -> snapshot.Snapshot:
    """Download ``ORG/NAME`` into ``to``, keeping the files that are there already, and look at the result.

    Raises UsageError for a name that is none, BlockedError when the hub must not be asked, cannot be reached,
    refuses, or gave less than the whole model.
    """
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise UsageError(
            f"{model!r} is not ORG/NAME", remedy="as in: proveout model fetch Qwen/Qwen3-0.6B --to DIR"
        )
    if offline.says(env):
        names = " and ".join(name for name, on in offline.set_in(env).items() if on)
        raise BlockedError(
            f"{names} says offline, so {model} is not fetched",
            remedy="unset it for this command, or copy the model here from a machine that has it",
        )
    _download(model, to, revision)
    found = snapshot.inspect(str(to), to)
    if not found.whole:
        raise BlockedError(
            "; ".join(problem.what for problem in found.problems),
            where=str(to),
            remedy="the hub's copy is not a whole model of this kind, or the download was cut short: try again",
        )
    return found


def _download(model: str, to: Path, revision: str | None) -> None:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
    except ImportError:
        raise BlockedError(
            "huggingface_hub is not installed, and fetching needs it",
            remedy="python -m pip install 'proveout[bench]', or huggingface_hub alone",
        ) from None
    endpoint = os.environ.get("HF_ENDPOINT", "the hub")
    try:
        snapshot_download(model, local_dir=to, revision=revision)
    except GatedRepoError:
        raise BlockedError(
            f"{model} is gated", remedy="accept its licence on the hub and set HF_TOKEN"
        ) from None
    except RepositoryNotFoundError:
        raise BlockedError(
            f"{endpoint} knows no {model}, or does not show it to you",
            remedy="check the name, or set HF_TOKEN",
        ) from None
    except HfHubHTTPError as error:
        raise BlockedError(f"{endpoint} refuses: {_first_line(error)}", remedy="try again later") from None
    except Exception as error:  # the transport's own kinds of failure: httpx, sockets, proxies, disks
        raise BlockedError(
            f"{model} was not fetched: {type(error).__name__}: {_first_line(error)}",
            where=str(to),
            remedy="when the cause is gone, the same command goes on where this one stopped",
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]
