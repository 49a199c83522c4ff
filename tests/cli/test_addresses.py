"""Addresses as they are typed."""

import argparse

import pytest

from amt_stream.cli.options import address


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
