"""``python -m proveout_bench``."""

import os
import sys

from proveout_bench import warm

if __name__ == "__main__":
    if warm.VARIABLE in os.environ:
        sys.exit(warm.delegate(os.environ[warm.VARIABLE]))
    from proveout_bench.cli import main

    main()
