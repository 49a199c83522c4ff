"""`amt-stream devices`."""

import argparse

from amt_stream.calibration import read_records
from amt_stream.cli.messages import say
from amt_stream.engine.devices import list_devices


def run_devices(args: argparse.Namespace) -> int:
    """List the inputs on standard output, `*` before the default."""
    devices = list_devices()
    records = read_records()
    if not devices:
        say("there is no input device; `amt-stream meter --source demo` needs none")
    for device in devices:
        star = "*" if device.default else " "
        behind = "" if device.behind is None else f", now {device.behind}"
        channels = f"{device.channels} channel" + ("" if device.channels == 1 else "s")
        print(
            f"{star} {device.index:3d} {device.name} ({device.host_api}){behind}, {channels}, "
            f"{device.fs} Hz"
        )
        for record in records:
            if record.device in device.kept_by:
                print(f"        channel {record.channel}: {record.calibration}")
    return 0
