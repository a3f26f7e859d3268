"""``python -m proveout``."""

from proveout.cli.main import main

main()
