"""What a reader is: a named format that turns a file into readings and knows its own kind of file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from proveout.capture.reading import Reading


class Reader(NamedTuple):
    """A metric format.

    ``read`` gives one reading for each run of writing in the file, in order; it raises OSError alone,
    whatever the file holds. ``recognises`` decides by content from the path and the file's first 64 KiB. ``files`` is
    the name pattern that stands for this format in a directory.
    """

    name: str
    read: Callable[[Path], list[Reading]]
    recognises: Callable[[Path, bytes], bool]
    files: str
