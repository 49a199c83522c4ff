"""Servers of HTTP that hold up, flood or mislead those who send to them."""

import contextlib
import gzip
import io
import itertools
import queue
import socket
import threading

from tests.patience import PATIENCE_S


class Stuck:
    """A server that misbehaves until it is `mended`; then it accepts all.

    behave: called in a thread for each connection; `self.pause` waits between bytes, and is true
        once the server ends
    """

    def __init__(self, behave):
        self._behave, self.mended = behave, threading.Event()
        self.met, self.accepted = queue.Queue(), queue.Queue()
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve)]

    def pause(self):
        return self._over.wait(0.02)

    def _serve(self):
        while True:
            connection, _ = self._socket.accept()
            if self._over.is_set():
                connection.close()
                return
            self._threads.append(threading.Thread(target=self._meet, args=(connection,)))
            self._threads[-1].start()

    def _meet(self, connection):
        with connection, contextlib.suppress(OSError):
            if self.mended.is_set():
                self.accepted.put(request_of(connection))
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            else:
                self.met.put(1)
                self._behave(self, connection)

    def meets(self):
        """Wait until somebody has come."""
        self.met.get(timeout=PATIENCE_S)

    def accepts(self):
        """The body of the next request that it has accepted."""
        return self.accepted.get(timeout=PATIENCE_S)

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        self._over.set()
        socket.create_connection(self._socket.getsockname()).close()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        self._socket.close()


def request_of(connection):
    """The body of a request with a length."""
    with connection.makefile("rb") as file:
        length = 0
        while (line := file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return file.read(length)


def drip(server, connection, text):
    """Answer byte by byte, and end only with the server."""
    for byte in text:
        if server.pause():
            return
        connection.sendall(bytes([byte]))
    while not server.pause():
        pass


def says_nothing(server, connection):
    drip(server, connection, b"")


def reads_nothing_and_answers_byte_by_byte(server, connection):
    drip(server, connection, b"HTTP/1.1 204 No Content\r\nX: " + b"x" * 5000)


def drips_the_status(server, connection):
    request_of(connection)
    drip(server, connection, itertools.chain(b"HTTP/1.1 204 ", itertools.repeat(32)))


def drips_headers_without_end(server, connection):
    request_of(connection)
    connection.sendall(b"HTTP/1.1 204 No Content\r\n")
    drip(server, connection, itertools.cycle(b"X-More: y\r\n"))


def pours_headers_without_end(server, connection):
    request_of(connection)
    connection.sendall(b"HTTP/1.1 204 No Content\r\n")
    while not server.pause():
        connection.sendall(b"X-More: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 5000)


def asks_for_patience_without_end(server, connection):
    request_of(connection)
    while not server.pause():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def drips_why_it_refuses(server, connection):
    request_of(connection)
    connection.sendall(b"HTTP/1.1 500 Broken\r\nContent-Length: 100000\r\n\r\n")
    drip(server, connection, itertools.repeat(97))


def bomb():
    """A few kB of gzip that become 50 MB."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(50):
            file.write(bytes(10**6))
    return packed.getvalue()


BOMB = bomb()


def refuses_with_a_bomb(server, connection):
    request_of(connection)
    head = b"HTTP/1.1 500 Broken\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % len(BOMB) + BOMB)


def points_to_itself(server, connection):
    request_of(connection)
    where = f"http://{server.place}/again".encode()
    connection.sendall(b"HTTP/1.1 307 Over there\r\nLocation: %s\r\n\r\n" % where)


def speaks_another_language(server, connection):
    request_of(connection)
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def hangs_up(server, connection):
    request_of(connection)


def refuses_with_cookies(server, connection):
    request_of(connection)
    cookies = b"".join(b"Set-Cookie: a%d=b\r\n" % k for k in range(500))
    connection.sendall(b"HTTP/1.1 500 Broken\r\n%s\r\n" % cookies)


EACH = {
    says_nothing: "has not answered within",
    reads_nothing_and_answers_byte_by_byte: "has not answered within",
    drips_the_status: "has not answered within",
    drips_headers_without_end: "has not answered within",
    pours_headers_without_end: "cannot be reached: ",
    asks_for_patience_without_end: "has not answered within",
    drips_why_it_refuses: "answers 500 Broken: a",
    refuses_with_a_bomb: "answers 500 Broken",
    points_to_itself: "answers 307 Over there: give the address that it points to, http",
    speaks_another_language: "cannot be reached: ",
    hangs_up: "cannot be reached: ",
    refuses_with_cookies: "answers 500 Broken",
}
"""What a sender says about each of these servers."""
