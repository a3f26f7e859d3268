"""The offline variables agree with each other, and with where the caches are."""

from __future__ import annotations

from collections.abc import Iterator

from proveout.assets import offline
from proveout.domain.finding import Finding, Where
from proveout.domain.preflight import PreflightContext
from proveout.preflight.check import Check, warning

CACHES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE")


def run(context: PreflightContext) -> Iterator[Finding]:
    """Some say offline and some say online; a value that no library understands; caches in two places."""
    seen: set[str] = set()
    for env in context.environments().values():
        said = offline.set_in(env)
        odd = sorted(
            name
            for name in said
            if env[name].strip().lower() not in offline.TRUE | {"", "0", "off", "no", "false"}
        )
        for name in odd:
            if name not in seen:
                seen.add(name)
                yield warning(
                    "offline.value",
                    f"{name}={env[name]} is read as online",
                    where=Where(key=name),
                    remedy=f"set {name}=1 or unset it",
                )
        if any(said.values()) and not all(said.values()) and "mixed" not in seen:
            seen.add("mixed")
            shown = ", ".join(f"{name}={env[name]}" for name in said)
            yield warning(
                "offline.mixed",
                f"the offline variables contradict each other: {shown}",
                where=Where(key=next(name for name, value in said.items() if not value)),
                remedy="set all of them to 1, or none",
            )
        named = {env[name] for name in CACHES if env.get(name)}
        if len(named) > 1 and "caches" not in seen:
            seen.add("caches")
            yield warning(
                "offline.caches",
                f"snapshots are looked for in several places: {', '.join(sorted(named))}",
                where=Where(key="HF_HUB_CACHE"),
                remedy="keep HF_HOME alone, or give all of them the same value",
            )


CHECK = Check(
    id="offline",
    proves="the offline variables and cache directories of the Hugging Face libraries agree",
    remedy="set HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE and HF_DATASETS_OFFLINE alike",
    run=run,
)
