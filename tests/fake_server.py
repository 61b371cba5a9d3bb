"""A server on this machine that a test talks to over HTTP."""

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class FakeServer:
    """`with` starts and stops it; `url` is its address. A subclass answers the requests, each in a thread."""

    url = ""

    def __enter__(self) -> Self:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self):
                with suppress(ConnectionError):  # of a killed client
                    super().handle()

            def handle_request(self):
                outer.answer(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            do_GET = do_POST = do_PUT = handle_request  # noqa: N815

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        raise NotImplementedError
