"""The exact local state of checkouts, copied to another machine by git, rsync and ssh, and verified there."""

from __future__ import annotations

from proveout.launch.sync.place import Place, place_of
from proveout.launch.sync.transfer import Synced, sync

__all__ = ["Place", "Synced", "place_of", "sync"]
