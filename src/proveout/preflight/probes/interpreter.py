"""What an interpreter is and would import: python, sys.path, module origins, package versions.

argv[1] is JSON: ``modules`` (dotted names), ``packages`` (distribution names), ``imports`` (modules to
import in earnest), ``first`` (what stands in place of the script's directory on sys.path).
Finding a module imports its parent packages and nothing heavier.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]


def locate(name: str) -> dict[str, Any]:
    """Where ``name`` would be imported from, and which further copies sys.path holds."""
    origin = error = None
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None:
            origin = spec.origin or next(iter(spec.submodule_search_locations or []), None)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    copies = [Path(entry or ".").joinpath(*name.split("."), "__init__.py") for entry in sys.path]
    chosen = Path(origin).resolve() if origin else None
    others = [str(copy.absolute()) for copy in copies if copy.is_file() and copy.resolve() != chosen]
    return {"origin": origin, "error": error, "others": others}


def really(name: str) -> dict[str, Any]:
    """The file that a true import of ``name`` gives."""
    try:
        return {"file": getattr(importlib.import_module(name), "__file__", None), "error": None}
    except BaseException as problem:
        return {"file": None, "error": f"{type(problem).__name__}: {problem}"}


def version(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def report(asked: dict[str, Any]) -> dict[str, Any]:
    """The whole answer."""
    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "ext_suffix": sysconfig.get_config_var("EXT_SUFFIX"),
        "path": list(sys.path),
        "pythonpath": os.environ.get("PYTHONPATH"),
        "modules": {name: locate(name) for name in asked.get("modules", [])},
        "packages": {name: version(name) for name in asked.get("packages", [])},
        "imported": {name: really(name) for name in asked.get("imports", [])},
    }


if __name__ == "__main__":
    question = json.loads(sys.argv[1])
    if question.get("first"):
        sys.path.insert(0, question["first"])
    print("\nPROVEOUT-PROBE " + json.dumps(report(question)), flush=True)
