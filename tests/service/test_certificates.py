"""The meter names a refused certificate, and does not call it a missing answer."""

import asyncio
import ssl
import subprocess
import threading

import pytest

from amt_stream.service.transports.http_endpoint import Endpoint
from amt_stream.service.transports.http_request import HttpRequest
from amt_stream.service.transports.mqtt import Broker, Mqtt

SAID = (
    "has a certificate that is refused: {}; correct it, or name the file of its authority in the "
    "variable SSL_CERT_FILE"
)


@pytest.fixture
def elsewhere(tmp_path):
    """A server whose certificate is that of example.org; gives its port and the certificate."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    asked = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=example.org -addext"
    asked = [*asked.split(), "subjectAltName=DNS:example.org", "-keyout", key, "-out", certificate]
    subprocess.run(asked, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.new_event_loop()
    serving = asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", ssl=context)
    server = loop.run_until_complete(serving)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1], certificate
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.parametrize(
    ("trusted", "why"),
    [
        (False, "self-signed certificate"),
        (True, "Hostname mismatch, certificate is not valid for 'localhost'"),
    ],
)
# paho leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_certificate_that_is_refused_is_told(elsewhere, monkeypatch, trusted, why):
    port, certificate = elsewhere
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with HttpRequest(Endpoint(f"https://localhost:{port}/", {})) as request:
        answer = request.post(b"x")
    assert (answer.status, answer.words) == (0, SAID.format(why))
    transport = Mqtt(Broker("localhost", port, tls=True), "amt")

    async def connect():
        await transport.open(None)
        async with asyncio.timeout(20):
            while not transport.note:
                await asyncio.sleep(0.01)
        await transport.close()

    asyncio.run(connect())
    assert transport.note == f"the MQTT broker localhost:{port} {SAID.format(why)}"
