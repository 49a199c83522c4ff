"""`amt-stream devices`."""

from amt_stream.cli.messages import say
from amt_stream.cli.options.parser import ListsDevices
from amt_stream.core.safe_text import plain
from amt_stream.engine.devices.listing import list_devices
from amt_stream.meters.calibration import kept_channels


def run_devices(args: ListsDevices) -> int:
    """List the inputs on standard output, `*` before the default."""
    devices = list_devices()
    kept = kept_channels()
    if not devices:
        say("there is no input device; `amt-stream meter --source demo` needs none")
    for device in devices:
        star = "*" if device.default else " "
        index = f"{device.index:3d}" if device.has_index else "  -"
        kind = "playback, " if device.played else ""
        channels = f"{device.channels} channel" + ("" if device.channels == 1 else "s")
        print(
            f"{star} {index} {plain(device.entry)}, {device.host_api}, {kind}{channels}, "
            f"{device.fs} Hz"
        )
        for one in kept:
            if one.device in device.kept_by:
                print(f"        channel {one.channel}: {plain(one.calibration)}")
                if reminder := one.calibration.reminder():
                    print(f"        {reminder}")
    return 0
