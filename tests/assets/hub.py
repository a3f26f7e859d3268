"""A small hub on this machine: a stand-in that speaks as much of the protocol as a download needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c" * 40


class Hub:
    """Serves the files of one model. ``cut`` holds names whose next download breaks off half-way."""

    def __init__(self, model: str, files: Path) -> None:
        self.model, self.files = model, files
        self.cut: set[str] = set()
        self.status: int | None = None
        self.served: list[str] = []
        self.url = ""

    @contextmanager
    def running(self) -> Iterator[Hub]:
        """Serves until the block ends."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, *, body: bool) -> None:
                if hub.status:
                    reason = {403: "GatedRepo", 404: "RepoNotFound"}.get(hub.status, "")
                    return self.send(hub.status, b"no", {"X-Error-Code": reason}, body=body)
                if self.path.startswith("/api/models/"):
                    return self.listing(body=body)
                _, _, name = self.path.partition(f"/resolve/{COMMIT}/")
                name = name.partition("?")[0]
                if not name:
                    return self.send(404, b"no such page", {}, body=body)
                if body:
                    hub.served.append(name)
                data = (hub.files / name).read_bytes()
                headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
                headers["Accept-Ranges"] = "bytes"
                wanted = self.headers.get("Range", "")
                if body and wanted:
                    first = int(wanted.removeprefix("bytes=").split("-")[0])
                    headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
                    return self.send(206, data[first:], headers, body=body)
                return self.send(200, data, headers, body=body, cut=body and name in hub.cut)

            def listing(self, *, body: bool) -> None:
                if "/tree/" in self.path:
                    rows = [
                        {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": "0" * 40}
                        for f in sorted(hub.files.iterdir())
                    ]
                    return self.send(200, json.dumps(rows).encode(), {}, body=body)
                siblings = [{"rfilename": file.name} for file in sorted(hub.files.iterdir())]
                info = {"id": hub.model, "modelId": hub.model, "sha": COMMIT, "siblings": siblings}
                return self.send(
                    200, json.dumps(info).encode(), {"Content-Type": "application/json"}, body=body
                )

            def send(
                self, status: int, data: bytes, headers: dict[str, str], *, body: bool, cut: bool = False
            ) -> None:
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if body:
                    self.wfile.write(data[: len(data) // 2] if cut else data)
                if cut:
                    self.wfile.flush()
                    self.close_connection = True

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
