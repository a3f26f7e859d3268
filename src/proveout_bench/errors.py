"""What stops a run before or during training, with the exit status that it maps to."""

from __future__ import annotations


class BenchError(Exception):
    """A stop with a message for the reader: what was wrong, where, what to do."""

    exit_status = 1


class ConfigError(BenchError):
    """A wrong override, model directory or combination of settings. Exit status 2."""

    exit_status = 2


class EnvironmentFaultError(BenchError):
    """The machine does not allow the run: no space, no permission, a missing package. Exit status 3."""

    exit_status = 3
