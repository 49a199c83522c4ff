"""Readings beside other signals of a lab: what `amt-stream serve --lsl` gives, read by pylsl.

python apps/lsl_inlet.py        ten rows of a meter that runs on this computer (extra lsl)
"""

import pylsl

# As the meter: found on this computer alone. Leave it out for `--lsl-network`.
pylsl.set_config_content("[multicast]\nResolveScope=machine\nListenAddress=127.0.0.1\n")


def labels(info: pylsl.StreamInfo) -> list[str]:
    """Names of the channels, which are those of columns, then valid, settling and the like."""
    channel = info.desc().child("channels").child("channel")
    found = []
    while not channel.empty():
        found.append(channel.child_value("label"))
        channel = channel.next_sibling("channel")
    return found


def main() -> None:
    streams = pylsl.resolve_byprop("type", "Loudness", timeout=20)
    if not streams:
        raise SystemExit("no meter is there: start amt-stream serve --lsl")
    inlet = pylsl.StreamInlet(streams[0])
    names = labels(inlet.info())
    for _ in range(10):
        sample, stamp = inlet.pull_sample(timeout=20)
        row = dict(zip(names, sample, strict=True))
        print(f"{stamp:.3f} {' '.join(f'{name}={value:g}' for name, value in row.items())}")


if __name__ == "__main__":
    main()
