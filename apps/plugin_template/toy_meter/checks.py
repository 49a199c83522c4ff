"""Its self-test: `amt-stream selftest --model toy` plays these sounds to the model."""

from amt_stream.offline.selftest.check import Trial
from amt_stream.offline.selftest.requirement import published, read
from amt_stream.offline.selftest.sounds import tone_in_pascal

LEVEL = published("level", read("toymax_db"), 94.0, "dB", 0.1, "the definition of a pascal")

# The options are arguments of the model.
CHECKS = (Trial("toy", tone_in_pascal(1000, 1.0, 0.5, channels=1), (LEVEL,), {"fs": 48000}),)
