"""What a test gets when it asks for ``tracker``."""

from __future__ import annotations

from proveout.pytest_plugin.tracking.recorder import Recorder

ELAPSED = "_elapsed"


class Tracker:
    """Records metrics of one test; a name that is tracked again in the same test takes the newer value."""

    def __init__(self, recorder: Recorder, node_id: str, key: str) -> None:
        self._recorder, self._node_id, self._key = recorder, node_id, key

    def track(self, metric_name: str, value: object) -> None:
        """Record a value: a number, text, or lists and dicts of them; arrays and tensors become numbers.

        Raises NotSerialisableError for anything else, so that this test fails and no other.
        """
        __tracebackhide__ = True
        if not isinstance(metric_name, str) or not metric_name:
            raise TypeError(f"a metric's name is text that is not empty, not {metric_name!r}")
        self._recorder.track(self._node_id, self._key, metric_name, value)

    def get_max_mem(self) -> float:
        """The most memory that any GPU has in use now, in GiB, over all nodes where Ray runs.

        Where there is no GPU: the resident memory of this process and its children.
        """
        from proveout.pytest_plugin.tracking.memory import read_memory

        return read_memory().max_gib

    def log_max_mem(self, metric_name: str) -> None:
        """Track ``get_max_mem()`` under this name."""
        __tracebackhide__ = True
        self.track(metric_name, self.get_max_mem())
