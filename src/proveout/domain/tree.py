"""A source tree as it stands on disk: read lazily, never written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from proveout.domain.errors import UsageError

_LARGEST_TEXT = 16 * 1024 * 1024
_EXPONENT = re.compile(r"[+-]?\d[\d_]*[eE][+-]?\d+\Z")


@cache
def _loader() -> Any:
    """A safe loader that reads ``1e-6`` as a number, as OmegaConf does and plain YAML 1.1 does not."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("Loader", (base,), {})
    loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("+-0123456789"))
    return loader


def parse_yaml(text: str) -> Any:
    """The data of a YAML text, read safely. Raises yaml.YAMLError."""
    import yaml

    return yaml.load(text, Loader=_loader())  # noqa: S506 - a safe loader


class Tree:
    """Files of one checkout by path relative to its root. Texts and YAML are read once.

    ``kept`` holds what readers made of files, by reader and path, so that it is made once; it must not be
    changed.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._texts: dict[str, str] = {}
        self._yaml: dict[str, dict[str, Any]] = {}
        self.kept: dict[tuple[str, str], Any] = {}

    def path(self, relative: str) -> Path:
        """The absolute path of ``relative``."""
        return self.root / relative

    def exists(self, relative: str) -> bool:
        """Whether a file or directory of this name exists."""
        try:
            return self.path(relative).exists()
        except OSError:
            return False

    def glob(self, pattern: str) -> list[str]:
        """Paths that match ``pattern``, relative with forward slashes, sorted."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))

    def text(self, relative: str) -> str:
        """The text of a file; bytes that are not UTF-8 are replaced.

        Raises UsageError when it cannot be read.
        """
        if relative not in self._texts:
            path = self.path(relative)
            try:
                if path.stat().st_size > _LARGEST_TEXT:
                    raise UsageError("is too large to be read as text", where=str(path))
                self._texts[relative] = path.read_bytes().decode("utf-8", errors="replace")
            except OSError as error:
                raise UsageError(
                    f"cannot be read: {error.strerror or error}",
                    where=str(path),
                    remedy="check that the checkout is complete",
                ) from error
        return self._texts[relative]

    def yaml(self, relative: str) -> dict[str, Any]:
        """The mapping that a YAML file holds. Raises UsageError naming file and line when it is none."""
        if relative not in self._yaml:
            import yaml

            try:
                data = parse_yaml(self.text(relative))
            except (yaml.YAMLError, RecursionError, ValueError) as error:
                mark = getattr(error, "problem_mark", None)
                where = f"{self.path(relative)}" + (f":{mark.line + 1}" if mark else "")
                what = getattr(error, "problem", None) or str(error).splitlines()[0]
                raise UsageError(f"is not valid YAML: {what}", where=where) from error
            if not isinstance(data, dict | None):
                raise UsageError("holds no mapping at its top", where=str(self.path(relative)))
            self._yaml[relative] = data or {}
        return self._yaml[relative]

    def nearest(self, relative: str, patterns: Iterable[str]) -> str:
        """The existing path most like ``relative`` among those that match ``patterns``, or ''."""
        name = PurePosixPath(relative).name
        best, score = "", 0.6
        for pattern in patterns:
            for candidate in self.glob(pattern):
                likeness = SequenceMatcher(None, name, PurePosixPath(candidate).name).ratio()
                if likeness > score:
                    best, score = candidate, likeness
        return best
