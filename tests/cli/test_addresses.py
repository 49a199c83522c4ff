"""Addresses as they are typed."""

import argparse

import pytest

from amt_stream.cli.options.arguments import address, origin


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        ("[::1]:1", ("::1", 1)),
        ("desk.local:65535", ("desk.local", 65535)),
    ],
)
def test_host_and_port(text, meant):
    assert address(text) == meant


@pytest.mark.parametrize(
    "text", ["", "9000", ":9000", "host", "host:", "::1:9000", "[a]:1", "a:-1"]
)
def test_what_is_none_is_said(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"give HOST:PORT, or \[::1\]:PORT"):
        address(text)


@pytest.mark.parametrize("port", ["0", "65536", "9" * 5000])
def test_there_is_no_such_port(port):
    with pytest.raises(argparse.ArgumentTypeError, match="is a number from 1 to 65535"):
        address(f"host:{port}")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("https://Example.org/", "https://example.org"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("null", "null"),
    ],
)
def test_an_origin_as_a_browser_tells_it(text, meant):
    assert origin(text) == meant


@pytest.mark.parametrize("text", ["", "*", "example.org", "https://example.org/page", "ftp://a"])
def test_what_no_browser_would_tell_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="give scheme and host of the page"):
        origin(text)
