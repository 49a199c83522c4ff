"""Eight microphones over the wire: each row is what its channel gives by itself."""

import numpy as np
import soundfile

from amt_stream import measure
from tests.service.served import Served, is_row

NAMES = "abcdefgh"
COLUMNS = ("laf_db", "laeq_db", "zwicker_n_sone")


def test_each_of_eight_rows_is_what_its_channel_gives_alone(tmp_path):
    path = tmp_path / "eight.wav"
    level = 10 ** (-np.arange(8) / 4)
    noise = 0.3 * level * np.random.default_rng(5).uniform(-1, 1, (48000 * 3, 8))
    soundfile.write(path, noise, 48000, subtype="FLOAT")
    channels = [word for k, name in enumerate(NAMES, 1) for word in ("-c", f"{name}={k}")]
    asked = ["--model", "spl,zwicker", "--columns", ",".join(COLUMNS), "--full-scale-db", "110"]
    with Served("--source", str(path), "--fast", *channels, *asked) as served:
        served.until(lambda message: "summary" in message)
    rows = {name: [] for name in NAMES}
    for message in served.past:
        if is_row(message):
            rows[message["row"]].append(message)
    for k, name in enumerate(NAMES):
        alone = measure(
            path, models="spl,zwicker", channels=[k + 1], calibration=110.0, step_ms=100,
            columns=",".join(COLUMNS),
        )  # fmt: skip
        for column in ("time_s", *COLUMNS):
            sent = [np.nan if one[column] is None else one[column] for one in rows[name]]
            np.testing.assert_array_equal(sent, alone[column], err_msg=f"{name} {column}")
