"""Secrets are taken out of whatever proveout writes."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "[redacted]"
_SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_?KEY(?:_ID)?|PRIVATE_?KEY|"
    r"AUTH|COOKIE|SESSION_?KEY|DSN)(?:$|[_-])",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|sk-[A-Za-z0-9_-]{20,}"
    r"|nvapi-[\w-]{20,}|xox[baprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"
)
_IS = r"[\"']?\s*[=:]\s*[\"']?"
_MEASURED = r"(?:np\.float\d+\()?-?\d+\.\d+(?:e[-+]?\d+)?\)?(?:\s|$)"  # of a metric, as in chi2_token:1.2e-07
_SECRET_PAIR = re.compile(
    rf"(?i)((?:secret|password|passwd|api_?key|access_?key){_IS}|token{_IS}(?!{_MEASURED}))([^\s\"',;&]{{6,}})"
    r"|(bearer\s+)([A-Za-z0-9._~+/-]{12,}=*)|(://[^\s/:@]+:)([^\s/@]+)(?=@)"
)


def is_secret_name(name: str) -> bool:
    """Whether a variable or key of this name holds a secret (HF_TOKEN, WANDB_API_KEY, ...)."""
    return bool(_SECRET_NAME.search(name))


def text(value: str) -> str:
    """``value`` with every token, key and password that can be recognised replaced."""
    masked = _SECRET_TEXT.sub(MASK, value)
    return _SECRET_PAIR.sub(lambda m: next(g for g in (m[1], m[3], m[5]) if g is not None) + MASK, masked)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment fit to be written: secrets by name are masked, the rest by content."""
    return {key: MASK if is_secret_name(key) else text(value) for key, value in sorted(env.items())}
