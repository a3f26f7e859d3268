"""Packages of a test's own, so that pip needs no index: wheels, and a source package that waits while it is built."""

from __future__ import annotations

import tarfile
import zipfile
from io import BytesIO
from pathlib import Path


def wheel(place: Path, name: str, version: str = "1.0", tag: str = "py3-none-any", text: str = "") -> Path:
    """A wheel with one package of that name."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": text or f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.11\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    target = place / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return target


def waiting_source(place: Path, name: str, pipe: Path) -> Path:
    """A source package whose build opens ``pipe`` to write, and so waits until somebody reads it."""
    backend = f"open({str(pipe)!r}, 'w').write('building')\nimport time\ntime.sleep(600)\n"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    target = place / f"{name}-1.0.tar.gz"
    with tarfile.open(target, "w:gz") as archive:
        for file, content in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{file}")
            entry.size = len(content)
            archive.addfile(entry, BytesIO(content.encode()))
    return target
