"""The readers by name; a new one is one file under ``readers`` and one line here.

The order is the order in which content is tried: the strictest first.
"""

from __future__ import annotations

from proveout.capture.reader import Reader
from proveout.capture.readers import (
    csv_table,
    jsonl,
    nemo_json,
    tensorboard,
    trl_console,
    trl_state,
    verl_console,
)

READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        tensorboard.READER,
        trl_state.READER,
        nemo_json.READER,
        jsonl.READER,
        csv_table.READER,
        verl_console.READER,
        trl_console.READER,
    )
}
