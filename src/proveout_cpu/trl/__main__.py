"""``python -m proveout_cpu.trl ALGORITHM key=value...``; status 2 for wrong settings."""

from __future__ import annotations

import os
import sys

from proveout_cpu.trl.settings import SettingError, read


def main(arguments: list[str]) -> int:
    """Check the settings; with ``--check`` stop there, else run."""
    check = "--check" in arguments
    words = [word for word in arguments if word != "--check"]
    try:
        settings = read(words[0] if words else "", words[1:])
    except SettingError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if check:
        return 0
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    settings.write()
    from proveout_cpu.trl.rows import DataError
    from proveout_cpu.trl.run import run

    try:
        run(settings)
    except DataError as error:
        print(f"proveout_cpu: refused: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
