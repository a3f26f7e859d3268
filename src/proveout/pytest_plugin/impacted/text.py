"""References in plain text: shell scripts, YAML, JSON, and Python that this interpreter cannot parse."""

from __future__ import annotations

import re

from proveout.pytest_plugin.impacted.facts import Facts, Flag

DOTTED = re.compile(r"(?<![\w./-])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\.?|[A-Za-z_]\w*\.(?=[%{*]))")
WORD = re.compile(r"[A-Za-z_][\w-]{0,59}")
_TOKEN = re.compile(r"[\w./*?@+\-]+")
_FROM = re.compile(
    r"\bfrom[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?[ \t]*([\w*]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*\w+)*)"
)
_IMPORT = re.compile(r"\bimport[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)")
_RUN_MODULE = re.compile(r"(?:^|\s)-m[ =]+([A-Za-z_][\w.]*)")


def imports_in(text: str) -> set[str]:
    """Dotted names that import statements or ``-m`` options in ``text`` may load."""
    found: set[str] = set()
    if "import" in text:
        for module, names in _FROM.findall(text):
            found.add(module)
            separator = "" if not module or module.endswith(".") else "."
            found.update(module + separator + name.split()[0] for name in names.split(",") if name.split())
        for group in _IMPORT.findall(text):
            found.update(name.strip() for name in group.split(","))
    if "-m" in text:
        for module in _RUN_MODULE.findall(text):
            found.update((module, module + ".__main__"))
    found.discard("")
    return found


def paths_in(text: str) -> set[str]:
    """Tokens of ``text`` that look like a file: they hold a slash or end in a suffix."""
    found = set()
    for token in _TOKEN.findall(text):
        name = token.strip("/").removeprefix("./")
        base = name.rpartition("/")[2]
        stem, dot, suffix = base.rpartition(".")
        looks = ("/" in name) or (dot and stem and suffix.isalnum() and not suffix.isdigit())
        if looks and len(name) < 250 and any(character.isalpha() for character in name):
            found.add(name)
    return found


def text_facts(text: str, *, python: bool = False) -> Facts:
    """Facts of a text that has no syntax known here; for Python, flags are set as widely as they can be."""
    flags = (
        Flag.UNREADABLE | Flag.SPAWNS | Flag.DYNAMIC | Flag.ACTS | Flag.LISTS | Flag.OWN_PLACE
        if python
        else Flag(0)
    )
    tokens = _TOKEN.findall(text)
    return Facts(
        imports=tuple(sorted(imports_in(text))),
        names=tuple(sorted(set(DOTTED.findall(text)))),
        words=tuple(sorted({token for token in tokens if WORD.fullmatch(token)})),
        paths=tuple(sorted(paths_in(text))),
        places=tuple(sorted({"-:" + token.strip("/") for token in tokens if "/" in token.strip("/")})),
        flags=int(flags),
    )
