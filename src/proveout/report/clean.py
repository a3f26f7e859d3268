"""Makes a report fit to be shown: no secrets, nothing that names people or machines, no control bytes."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from proveout.domain import redact
from proveout.domain.report import Report

_STEERING = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e\u2066-\u2069]"
    r"|[\ud800-\udfff\ufffe\uffff]"
)
_HOME = re.compile(r"(?<![\w.-])/(?:root|(?:home|Users)/[^/\s'\":,;)\]]+)(?=[/\s'\":,;)\]]|$)")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
)
_LOGIN = re.compile(r"(?<![\w@/.])[a-z_][a-z0-9_-]{0,31}@(?=\[host\])")
_PRIVATE_ADDRESS = re.compile(
    r"(?<![\d.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?![\d.]*\d)"
)
_NAMED_HOST = re.compile(
    r"(?i)(\b(?:(?:host_?name|node_?name|node_?list|master_addr|slurmd_nodename)[\"']?\s*[=:]|(?:host|node)=)"
    r"\s*[\"']?)"
    r"(?!localhost\b|127\.|0\.0\.0\.0|\[host\]|none\b|null\b|true\b|false\b|\d+\b)([A-Za-z][\w.-]*[A-Za-z0-9])"
)
_CLOUD_HOST = re.compile(r"\bip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]+)?\b")
_EVENT_FILE = re.compile(r"(events\.out\.tfevents\.\d{9,}\.)(.+?)(?=\.\d+\.\d+\b|[\s'\",;:)\]]|$)")
_SHARED_NAMES = frozenset(
    {"root", "user", "admin", "ubuntu", "debian", "runner", "build", "test", "localhost"}
)
_SHORTEST_NAME = 4
_SHORTEST_SECRET = 8

Cleaner = Callable[[str], str]


def cleaned(report: Report, *, redacted: bool = True) -> Report:
    """The same report with every text cleaned; ``redacted`` also hides secrets, people and machines."""
    cleaner = redactor() if redacted else plain
    return msgspec.convert(_walk(msgspec.to_builtins(report), cleaner), Report)


def plain(text: str) -> str:
    """``text`` without escape sequences, control and direction characters; newlines and tabs stay."""
    return _STEERING.sub("", text)


def redactor(
    env: Mapping[str, str] | None = None, user: str | None = None, host: str | None = None
) -> Cleaner:
    """What hides tokens, keys, home directories, hosts, e-mail addresses and user names in a text.

    Values of ``env`` under names that hold secrets are hidden wherever they appear. ``user`` and ``host``
    are this machine's where they are not given; names that say nothing (root, localhost) stay.
    """
    env = os.environ if env is None else env
    known = _known_values(env)
    user = _user() if user is None else user
    host = socket.gethostname() if host is None else host
    hosts = _whole_words([host, host.partition(".")[0]])
    users = _whole_words([user])

    def clean(text: str) -> str:
        text = plain(text)
        if known is not None:
            text = known.sub(redact.MASK, text)
        text = redact.text(text)
        text = _HOME.sub("~", text)
        text = _EVENT_FILE.sub(r"\1[host]", text)
        text = _NAMED_HOST.sub(r"\1[host]", text)
        text = _CLOUD_HOST.sub("[host]", _PRIVATE_ADDRESS.sub("[host]", text))
        text = hosts.sub("[host]", text) if hosts is not None else text
        text = _EMAIL.sub("[e-mail]", _LOGIN.sub("[user]@", text))
        return users.sub("[user]", text) if users is not None else text

    return lru_cache(maxsize=4096)(clean)


def _known_values(env: Mapping[str, str]) -> re.Pattern[str] | None:
    values = {value for name, value in env.items() if redact.is_secret_name(name)}
    long = sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long))) if long else None


def _whole_words(names: Iterable[str]) -> re.Pattern[str] | None:
    told = [
        name for name in dict.fromkeys(names) if len(name) >= _SHORTEST_NAME and name not in _SHARED_NAMES
    ]
    return re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, told)) + r")(?![\w-])") if told else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _walk(value: Any, clean: Cleaner) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_walk(key, clean): _walk(each, clean) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(each, clean) for each in value]
    return value
