"""What one file says about others, before it is known which files exist."""

from __future__ import annotations

from enum import IntFlag

import msgspec

FACTS_VERSION = 7
"""Raised whenever extraction changes, so that cached facts of an older version are read again."""


class Flag(IntFlag):
    """What a file does that makes its dependencies wider than its imports."""

    LISTS = 1
    """Lists a directory (glob, iterdir, listdir, walk)."""
    OWN_PLACE = 2
    """Knows where it lies (``__file__``, ``__path__``, importlib.resources, the working directory)."""
    WALKS_PACKAGES = 4
    """Enumerates modules (pkgutil)."""
    DYNAMIC = 8
    """Imports or runs a module whose name is not a literal."""
    BUILDS_NAMES = 16
    """Builds the name of a module, and its beginning is not a literal."""
    SPAWNS = 32
    """Starts other processes, where in-process coverage sees nothing (ray, subprocess, multiprocessing)."""
    ENTRY_POINTS = 64
    """Reads installed entry points."""
    GLOBAL_HOOKS = 128
    """Defines pytest hooks that act on the whole session, not on one directory."""
    ACTS = 512
    """Runs functions of its own while it is imported, or once for several tests."""
    UNREADABLE = 256
    """Could not be parsed: the facts come from a search of its text."""


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """The references of one file, unresolved; everything sorted and free of repeats."""

    imports: tuple[str, ...] = ()
    """Dotted names as imported; leading dots count the level of a relative import."""
    names: tuple[str, ...] = ()
    """Dotted names inside strings; a trailing dot means that the rest is not known."""
    words: tuple[str, ...] = ()
    """Strings that are one identifier: possible names of packages, submodules or console scripts."""
    paths: tuple[str, ...] = ()
    """File names inside strings; ``*`` stands for an interpolated part."""
    places: tuple[str, ...] = ()
    """Paths that Python code puts together, as ``places.Place.text``."""
    roots: tuple[str, ...] = ()
    """Places put on the module search path, in the same form."""
    tables: dict[str, tuple[str, ...]] = {}
    """Constant tables by name: dotted names that are only their keys, and ``#NAME`` for a table taken into one."""
    whole: tuple[str, ...] = ()
    """Constants that the file uses otherwise than by looking one key up, so that any key may be used."""
    calls: tuple[str, ...] = ()
    """Imported names that it calls while it is imported."""
    flags: int = 0
    skeleton: str = ""
    """Hash of a Python file without the bodies of its functions: equal means that only bodies differ."""


EMPTY = Facts()
