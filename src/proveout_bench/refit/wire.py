"""Messages on a stream socket: a length, a JSON head, and the bytes of any number of tensors."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from torch import Tensor

from proveout_bench.errors import BenchError

_LENGTHS = struct.Struct("!IQ")


class PeerGoneError(BenchError):
    """The process at the other end of the socket is gone."""


class Link:
    """One end of a connection. ``sent`` and ``received`` count the bytes of payloads."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self.sent = self.received = 0

    def send(self, head: dict[str, Any], tensors: Sequence[Tensor] = (), blob: bytes = b"") -> None:
        """Send ``head`` with contiguous CPU ``tensors``, or with bytes in their place. PeerGoneError if nobody is there."""
        if tensors:
            head = head | {
                "tensors": [[str(one.dtype).removeprefix("torch."), list(one.shape)] for one in tensors]
            }
        parts = [_bytes_of(one) for one in tensors] if tensors else [memoryview(blob)]
        size = sum(part.nbytes for part in parts)
        text = msgspec.json.encode(head)
        try:
            self._socket.sendall(_LENGTHS.pack(len(text), size) + text)
            for part in parts:
                self._socket.sendall(part)
        except OSError as error:
            raise PeerGoneError(f"the other process is gone: {error.strerror or error}") from error
        self.sent += size

    def receive(self) -> tuple[dict[str, Any], list[Tensor], bytearray]:
        """The next message: head, tensors, and the payload as it came. PeerGoneError at the end of the stream."""
        text_size, size = _LENGTHS.unpack(self._exactly(_LENGTHS.size))
        head: dict[str, Any] = msgspec.json.decode(bytes(self._exactly(text_size)))
        payload = self._exactly(size)
        self.received += size
        return head, list(tensors_of(head.get("tensors", ()), payload)), payload

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _exactly(self, size: int) -> bytearray:
        data, place = bytearray(size), 0
        view = memoryview(data)
        while place < size:
            try:
                count = self._socket.recv_into(view[place:])
            except TimeoutError as error:
                raise PeerGoneError(
                    f"the other process did not answer within {self._socket.gettimeout():g} s"
                ) from error
            except OSError as error:
                raise PeerGoneError(f"the other process is gone: {error.strerror or error}") from error
            if not count:
                raise PeerGoneError("the other process closed the connection")
            place += count
        return data


def _bytes_of(tensor: Tensor) -> memoryview:
    return memoryview(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())


def tensors_of(shapes: Sequence[tuple[str, list[int]]], payload: bytearray) -> Any:
    """Tensors that lie one after another in ``payload``, sharing its memory."""
    place = 0
    for name, shape in shapes:
        dtype = getattr(torch, name)
        count = 1
        for side in shape:
            count *= side
        if count:
            yield torch.frombuffer(payload, dtype=dtype, count=count, offset=place).reshape(shape)
        else:
            yield torch.empty(shape, dtype=dtype)
        place += count * dtype.itemsize
