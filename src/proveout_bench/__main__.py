"""``python -m proveout_bench``."""

from proveout_bench.cli import main

if __name__ == "__main__":
    main()
