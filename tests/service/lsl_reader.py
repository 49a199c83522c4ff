"""A recorder: finds the streams of a name, says so, and prints what comes until a marker "end"."""

import json
import sys
import time

import pylsl

from amt_stream.service.transports.lsl import LOOPBACK

pylsl.set_config_content(LOOPBACK)
found = pylsl.resolve_bypred(f"starts-with(name, '{sys.argv[1]}')", 2, 20)
rows, events = sorted(found, key=lambda info: info.type())
inlets = [pylsl.StreamInlet(rows), pylsl.StreamInlet(events)]
info = inlets[0].info(20)
described = {
    "type": info.type(),
    "rate": info.nominal_srate(),
    "labels": info.get_channel_labels(),
    "units": info.get_channel_units(),
    "header": json.loads(info.desc().child_value("header")),
    "now": [pylsl.local_clock(), time.time()],
}
for inlet in inlets:
    inlet.open_stream(20)
print(json.dumps(described), flush=True)
heard, until_s = [[], []], time.monotonic() + 30
while time.monotonic() < until_s and not any('"text":"end"' in one[0] for one, _ in heard[1]):
    for of_stream, inlet in zip(heard, inlets, strict=True):
        samples, times = inlet.pull_chunk(timeout=0.05)
        of_stream += zip(samples, times, strict=True)
print(json.dumps(heard), flush=True)
