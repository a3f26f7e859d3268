"""Backend: the resolved configuration shows that what was to be tested was really on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proveout.domain.errors import nearest
from proveout.domain.evidence import CriterionResult, Evidence
from proveout.domain.finding import Boundary, Citation, Where
from proveout.judge import say


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``expected`` maps dotted keys of the resolved configuration to values."""

    expected: dict[str, Any]

    def __post_init__(self) -> None:
        if not self.expected:
            raise ValueError("expected: at least one key is needed")


def backend(evidence: Evidence, params: Mapping[str, Any]) -> CriterionResult:
    """Every expected key has its value in the configuration that the loop itself printed or saved."""
    wanted = msgspec.convert(dict(params), Params)
    config = evidence.config
    if config is None:
        unread = say.error(
            "backend.no-config",
            "no resolved configuration was found, so nothing shows which backend ran",
            where=Where(file=evidence.log),
        )
        return CriterionResult(kind="backend", findings=(unread,))
    findings, held = [], []
    for key, value in wanted.expected.items():
        where = Where(key=key)
        if key not in config:
            what = f"{key} is not in the resolved configuration{nearest(key, config)}"
            findings.append(say.error("backend.missing", what, where=where, boundary=Boundary.PROVIDER))
        elif not _same(_plain(config[key]), _plain(value)):
            cite = Citation(what="the resolved configuration", where=where, text=f"{key} = {config[key]!r}")
            what = f"{key} is {config[key]!r}, not {value!r}: what was to be tested did not run"
            findings.append(say.error("backend.differs", what, evidence=(cite,), boundary=Boundary.PROVIDER))
        else:
            held.append(Citation(what=f"{key} is on as asked", where=where, text=f"{key} = {config[key]!r}"))
    return CriterionResult(kind="backend", findings=tuple(findings), held=tuple(held))


def _same(found: Any, expected: Any) -> bool:
    return isinstance(found, bool) is isinstance(expected, bool) and bool(found == expected)


def _plain(value: Any) -> Any:
    """A value as configurations print it: ``"True"``, ``"null"`` and ``"2"`` mean what they say."""
    if not isinstance(value, str):
        return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
    words = {"true": True, "false": False, "none": None, "null": None}
    if value.strip().lower() in words:
        return words[value.strip().lower()]
    try:
        return float(value)
    except ValueError:
        return value
