"""``python -m proveout_bench``."""

import os
import sys

from proveout_bench import warm

if __name__ == "__main__":
    status = warm.delegate(os.environ[warm.VARIABLE]) if warm.VARIABLE in os.environ else None
    if status is not None:
        sys.exit(status)
    from proveout_bench.cli import main

    main()
