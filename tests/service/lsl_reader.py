"""A recorder: finds the streams, says so, and prints what comes until a marker "end"."""

import json
import time

import pylsl

from amt_stream.service.lsl import LOOPBACK

pylsl.set_config_content(LOOPBACK)
found = []
while len(found) < 2:
    found = pylsl.resolve_streams(1.0)
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
heard = [[], []]
while not any('"text":"end"' in sample[0] for sample, _ in heard[1]):
    for of_stream, inlet in zip(heard, inlets, strict=True):
        samples, times = inlet.pull_chunk(timeout=0.05)
        of_stream += zip(samples, times, strict=True)
print(json.dumps(heard), flush=True)
