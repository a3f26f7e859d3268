"""Loads configuration, tokenizer and, if asked, weights of a local model. argv[1] is JSON: path, weights."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """Errors by part; empty where everything loads. Nothing is fetched and no code of the model is run."""
    transformers = importlib.import_module("transformers")
    parts = {"config": "AutoConfig", "tokenizer": "AutoTokenizer"}
    if asked["weights"]:
        parts["weights"] = "AutoModelForCausalLM"
    errors = {}
    for part, name in parts.items():
        try:
            getattr(transformers, name).from_pretrained(asked["path"], local_files_only=True)
        except Exception as problem:
            errors[part] = f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
    return {"errors": errors}


if __name__ == "__main__":
    print("\nPROVEOUT-PROBE " + json.dumps(main(json.loads(sys.argv[1]))), flush=True)
