"""Makes a report fit to be shown: no secrets, no bytes that steer a terminal or turn text around."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proveout.domain import redact
from proveout.domain.report import Report

_STEERING = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e\u2066-\u2069]"
)


def cleaned(report: Report) -> Report:
    """The same report with every text cleaned."""
    return msgspec.convert(_walk(msgspec.to_builtins(report)), Report)


def plain(text: str) -> str:
    """``text`` without escape sequences, control and direction characters; newlines and tabs stay."""
    return _STEERING.sub("", text)


def _walk(value: Any) -> Any:
    if isinstance(value, str):
        return redact.text(plain(value))
    if isinstance(value, dict):
        return {_walk(key): _walk(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(each) for each in value]
    return value
