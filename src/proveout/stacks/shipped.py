"""The CPU platform's code where a stack's processes can import it, and nothing else beside it.

The directory that holds proveout_cpu may be a whole site-packages, whose other versions must not stand in front
of the stack's own; so the package is copied alone into a directory named after its content.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
from importlib.util import find_spec
from pathlib import Path

from proveout.domain.errors import BlockedError

PACKAGE = "proveout_cpu"
KEPT = ("*.py", "*.yaml", "*.toml", "*.json", "*.sh")


def source(package: str = PACKAGE) -> Path:
    """The installed package's directory. Raises BlockedError where this installation has none."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BlockedError(f"{package} is not installed beside proveout", remedy="install proveout again")
    return Path(next(iter(spec.submodule_search_locations)))


def platform_path(root: Path, packages: tuple[str, ...] = (PACKAGE,)) -> Path:
    """A directory under ``root`` that holds a copy of this proveout's ``packages`` alone; made where absent."""
    chosen = {
        f"{package}/{file.relative_to(origin)}": file
        for package in packages
        for origin in (source(package),)
        for file in sorted(found for pattern in KEPT for found in origin.rglob(pattern))
    }
    digest = hashlib.sha256()
    for name, file in chosen.items():
        digest.update(name.encode() + b"\0" + file.read_bytes())
    target = root / "platform" / digest.hexdigest()[:16]
    if target.is_dir():
        return target
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        for name, file in chosen.items():
            copy = fresh / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        if not target.is_dir():
            raise BlockedError(
                f"the platform cannot be copied: {error.strerror}", where=str(target)
            ) from error
    return target
