"""Programme loudness by ffmpeg's filter ebur128."""

import av
import numpy as np
from av.filter import Graph


def by_ffmpeg(x, layout, fs=48000):
    """Integrated loudness of a sound (time, channel) in LUFS, to 0.01."""
    graph = Graph()
    entrance = graph.add_abuffer(sample_rate=fs, format="flt", layout=layout)
    meter, end = graph.add("ebur128", "metadata=1"), graph.add("abuffersink")
    entrance.link_to(meter)
    meter.link_to(end)
    graph.configure()
    read = np.nan
    for at in range(0, len(x), fs // 10):
        part = np.ascontiguousarray(x[at : at + fs // 10], np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(part, format="flt", layout=layout)
        frame.sample_rate, frame.pts = fs, at
        graph.push(frame)
        read = float(graph.pull().metadata["lavfi.r128.I"])
    return read
