"""An HTTP server of one's own, which answers as it is asked to."""

import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from tests.patience import PATIENCE_S


class Posted(NamedTuple):
    path: str
    headers: dict
    body: str


class Receiver:
    """What was posted to it, in order; it answers 204, or first `answers`, as (status, headers)."""

    def __init__(self, *answers):
        self._answers, self._posted = list(answers), queue.Queue()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, headers = outer._answers.pop(0) if outer._answers else (204, {})
                outer._posted.put((status, Posted(self.path, dict(self.headers), body)))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if status != 204:
                    self.wfile.write(b'{"message": "because\x1b"}')

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def next(self):
        """The status that it answered, and the request."""
        return self._posted.get(timeout=PATIENCE_S)

    def rest(self):
        """What it has accepted and nobody has taken yet."""
        found = []
        while not self._posted.empty():
            status, request = self._posted.get()
            found += [request] if status == 204 else []
        return found

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
