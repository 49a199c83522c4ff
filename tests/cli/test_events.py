"""Events of sound from a real capture device."""

import json

import numpy as np
import soundfile

FS = 48000


def test_a_burst_at_the_microphone_is_in_a_file(begin, playing, sound_file, tmp_path):
    burst = np.random.default_rng(5).normal(0, 0.05, (FS, 1)).repeat(2, axis=1)
    path = sound_file(np.concatenate([np.zeros((FS // 2, 2)), burst, np.zeros((FS // 2, 2))]))
    call = ["meter", "-d", "virtual_mic", "--duration", 4, "--format", "csv", "--columns", "laf_db"]
    call += ["--event", "laf_db>60", "--event-folder", tmp_path / "sounds", "--event-before", 0.2]
    call += ["--event-after", 0.2]
    with begin(*call, "--full-scale-db", 100) as meter:
        assert any(line.startswith("0.0,") for line in iter(meter.stdout.readline, ""))
        with playing(path):
            meter.stdout.read()
            said = meter.stderr.read()
    assert meter.returncode == 0, said
    (kept,) = (tmp_path / "sounds").iterdir()
    assert f"is in {kept}" in said
    x, _ = soundfile.read(kept, always_2d=True)
    about = json.loads(soundfile.SoundFile(kept).comment)
    assert (about["gaps"], about["event"]["part"]) == ([], 1)
    assert about["header"]["source"]["name"] == "virtual_mic"
    # What was played begins 0.2 s into it and a row's step, and is there to the last bits.
    match = np.correlate(x[:FS, 0], burst[:4096, 0], mode="valid")
    begins = int(np.argmax(match))
    assert begins < round(0.35 * FS)
    heard = x[begins : begins + FS]
    gain = float((heard * burst).sum() / (burst * burst).sum())
    np.testing.assert_allclose(heard, gain * burst, atol=2e-4)
    assert abs(x[: begins - 480]).max() < 1e-3
