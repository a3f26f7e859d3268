"""What the stack's own processes say of themselves on the console, for proveout to read."""

from __future__ import annotations

import json
import sys
from typing import Any


def say_imports(importer: str, *modules: str) -> None:
    """From which file each loaded module came, one line each."""
    for name in modules:
        module = sys.modules.get(name)
        if module is not None:
            file = module.__file__ or next(iter(module.__path__), "")
            print(f"[import] {importer} {name} {file}", flush=True)


def say_trained(model: Any) -> None:
    """How many parameters are trained, and with an adapter the modules it is on and whether they hold tied weights."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    print(f"Number of trainable params: {sum(p.numel() for _, p in named)}", flush=True)
    adapted = sorted(
        {name.partition(".adapter.")[0].rpartition(".")[2] for name, _ in named if ".adapter." in name}
    )
    if adapted:
        config = getattr(model, "config", None) or getattr(getattr(model, "module", None), "config", None)
        tied = bool(getattr(config, "share_embeddings_and_output_weights", False))
        print(f"[adapter] {json.dumps({'modules': adapted, 'tied': tied})}", flush=True)
