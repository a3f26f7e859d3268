"""Logs beside an attempt's own that may hold the cause: the scheduler's, and those of a cluster that it brought up."""

from __future__ import annotations

from proveout.domain.errors import UsageError
from proveout.domain.files import read_json
from proveout.domain.layout import AttemptLayout
from proveout.launch.launchers import ray_sub
from proveout.launch.slurm.submit import Submitted, number_path, record_path


def extra_logs(files: AttemptLayout) -> tuple[str, ...]:
    """Their paths; those that are there and hold something."""
    found = ray_sub.logs(files)
    try:
        record = read_json(record_path(files), Submitted)
        number = read_json(number_path(record.folder), dict[str, str])["job"]
        found.append(record.log(number))
    except (UsageError, KeyError):
        pass
    return tuple(str(path) for path in found if path.is_file() and path.stat().st_size)
