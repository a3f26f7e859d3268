"""A run that is driven says so, and hears when it is to be cancelled, from this machine or another that shares it.

The driver writes ``driver.json`` again and again. Where the run's lock can be asked (on the same machine), the lock
tells whether it is driven; elsewhere that file does, by whether it goes on changing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.files import read_json, write_atomic, write_json
from proveout.store.runs import Run

CANCEL_SIGNAL = signal.SIGUSR2
LISTEN_SECONDS = 0.5
BEAT_SECONDS = 5.0
SILENT_SECONDS = 3 * BEAT_SECONDS


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """Which process drives a run; ``beat`` counts up for as long as it does."""

    pid: int
    host: str
    beat: int

    @property
    def here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()


@contextmanager
def driving(run: Run) -> Iterator[None]:
    """Say that this process drives ``run``; a request to cancel it raises KeyboardInterrupt in the main thread."""
    run.layout.cancel.unlink(missing_ok=True)
    stop = threading.Event()
    listens = threading.current_thread() is threading.main_thread()
    before = signal.signal(CANCEL_SIGNAL, _cancelled) if listens else None
    beating = threading.Thread(target=_beat, args=(run, stop, listens), daemon=True)
    beating.start()
    try:
        yield
    finally:
        stop.set()
        beating.join()
        with contextlib.suppress(OSError):
            run.layout.driver.unlink(missing_ok=True)
        if before is not None:
            signal.signal(CANCEL_SIGNAL, before)


def driver_of(run: Run) -> Driver | None:
    """The driver as it last said; None where nobody says so."""
    try:
        return read_json(run.layout.driver, Driver)
    except UsageError:
        return None


def request_cancel(run: Run) -> None:
    """Ask whoever drives the run to stop it. Raises OSError where the run directory cannot be written."""
    write_json(run.layout.cancel, {"host": socket.gethostname(), "pid": os.getpid(), "time": time.time()})


class Pulse:
    """Whether a run is driven, asked again and again."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._beat: int | None = None
        self._changed = 0.0

    def beats(self) -> bool:
        """True while it is driven; a driver on another machine counts as dead once it was silent for long."""
        driver = driver_of(self._run)
        if driver is None or driver.here:
            return self._run.active
        now = time.monotonic()
        if driver.beat != self._beat:
            self._beat, self._changed = driver.beat, now
        return now - self._changed < SILENT_SECONDS


def _beat(run: Run, stop: threading.Event, listens: bool) -> None:
    beat, last, asked = 0, float("-inf"), False
    while True:
        if time.monotonic() - last >= BEAT_SECONDS:
            beat, last = beat + 1, time.monotonic()
            said = Driver(pid=os.getpid(), host=socket.gethostname(), beat=beat)
            with contextlib.suppress(OSError):
                write_atomic(run.layout.driver, msgspec.json.encode(said))
        if listens and not asked and run.layout.cancel.exists():
            asked = True
            main = threading.main_thread().ident
            if main is not None:
                signal.pthread_kill(main, CANCEL_SIGNAL)
        if stop.wait(LISTEN_SECONDS):
            return


def _cancelled(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
