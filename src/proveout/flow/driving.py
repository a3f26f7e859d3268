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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import msgspec

from proveout.domain.errors import UsageError
from proveout.domain.files import read_json, write_atomic, write_json
from proveout.store.runs import Run

CANCEL_SIGNAL = signal.SIGUSR2
LISTEN_SECONDS = 0.5
BEAT_SECONDS = 5.0
BEAT_SECONDS_A_RUN = 0.05
LISTEN_SECONDS_A_RUN = 0.002
SILENT_BEATS = 3


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """Which process drives a run; ``beat`` counts up every ``every`` seconds for as long as it does."""

    pid: int
    host: str
    beat: int
    every: float = BEAT_SECONDS

    @property
    def here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()


@contextmanager
def driving(runs: Sequence[Run]) -> Iterator[None]:
    """Say that this process drives ``runs``; a request to cancel one raises KeyboardInterrupt in the main thread."""
    for run in runs:
        run.layout.cancel.unlink(missing_ok=True)
    stop = threading.Event()
    listens = threading.current_thread() is threading.main_thread()
    before = signal.signal(CANCEL_SIGNAL, _cancelled) if listens else None
    _say(runs, beat=1)
    beating = threading.Thread(target=_beat, args=(runs, stop, listens), daemon=True)
    beating.start()
    try:
        yield
    finally:
        stop.set()
        beating.join()
        for run in runs:
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
        return now - self._changed < SILENT_BEATS * driver.every


def _every(runs: Sequence[Run]) -> float:
    return max(BEAT_SECONDS, BEAT_SECONDS_A_RUN * len(runs))


def _say(runs: Sequence[Run], beat: int) -> None:
    driver = Driver(pid=os.getpid(), host=socket.gethostname(), beat=beat, every=_every(runs))
    said = msgspec.json.encode(driver)
    for run in runs:
        with contextlib.suppress(OSError):
            write_atomic(run.layout.driver, said)


def _beat(runs: Sequence[Run], stop: threading.Event, listens: bool) -> None:
    beat, last, asked = 1, time.monotonic(), False
    while True:
        if time.monotonic() - last >= _every(runs):
            beat, last = beat + 1, time.monotonic()
            _say(runs, beat)
        if listens and not asked and any(run.layout.cancel.exists() for run in runs):
            asked = True
            main = threading.main_thread().ident
            if main is not None:
                signal.pthread_kill(main, CANCEL_SIGNAL)
        if stop.wait(max(LISTEN_SECONDS, LISTEN_SECONDS_A_RUN * len(runs))):
            return


def _cancelled(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
