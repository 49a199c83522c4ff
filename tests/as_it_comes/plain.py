"""What the readings of a sound are by plain calculations, which share no code with the meters."""

from dataclasses import dataclass

import numpy as np
import scipy

from tests.data import independent_levels, independent_loudness, independent_programme
from tests.data.ffmpeg_meter import by_ffmpeg
from tests.data.independent_levels import REFERENCE_PA
from tests.data.independent_zwicker import over_time

FFMPEG_LAYOUTS = {1: "mono", 2: "stereo"}
WEIGHTS = {"LFE": 0.0, **dict.fromkeys(("Ls", "Rs", "Lss", "Rss"), 1.41)}
"""ITU-R BS.1770-5, Table 4: beside the listener, and without low-frequency effects; else 1."""


@dataclass(frozen=True)
class Heard:
    """The samples (time, channel) that a right reader gives, as fractions of full scale.

    positions: of each channel
    full_scale_db: level of a full-scale sine
    """

    x: np.ndarray
    fs: int = 48000
    positions: str = "L R"
    full_scale_db: float = 100.0

    @property
    def ears(self):
        """Pascal (time, channel) of the channels that models of ears hear."""
        names = self.positions.split()
        places = [place for place, name in enumerate(names) if name in ("L", "R")]
        x = self.x if len(names) < 3 else self.x[:, places]
        return x * REFERENCE_PA * np.sqrt(2) * 10 ** (self.full_scale_db / 20)

    def integrated_lufs(self):
        if self.fs != independent_programme.FS:
            return by_ffmpeg(self.x, FFMPEG_LAYOUTS[self.x.shape[1]], self.fs)
        weights = [WEIGHTS.get(name, 1.0) for name in self.positions.split()]
        whole = len(self.x) // 480 * 480  # blocks begin every 10 ms
        return independent_programme.integrated((self.x[:whole] * np.sqrt(weights)).T)

    def true_peak_dbtp(self):
        return independent_programme.true_peak_db(self.x.T)

    def sample_peak_dbfs(self):
        return 20 * np.log10(np.abs(self.x).max())

    def laeq_db(self):
        return independent_levels.equivalent_db(self.ears, self.fs).max()

    def lzeq_db(self):
        return independent_levels.equivalent_db(self.ears, self.fs, "z").max()

    def lcpeak_db(self):
        return independent_levels.peak_db(self.ears, self.fs).max()

    def lafmax_db(self):
        return independent_levels.highest_db(self.ears, self.fs).max()

    def l10_db(self):
        return independent_levels.exceeded_db(self.ears, self.fs, 10).max()

    def l90_db(self):
        return independent_levels.exceeded_db(self.ears, self.fs, 90).max()

    def zwicker_nmax_sone(self):
        return max(over_time(channel).max() for channel in self.ears.T)

    def max_ltl_sone(self):
        both = np.broadcast_to(self.ears, (len(self.ears), 2))
        _, long = independent_loudness.moore2016(scipy.signal.resample_poly(both, 2, 3, axis=0).T)
        return long.sum(axis=1).max()


def tolerance(name):
    """How far a reading may be from the plain one: 0.05 dB, or 0.5 % of a loudness in sone."""
    return {"rel": 0.005, "abs": 0.0} if name.endswith("_sone") else {"rel": 0.0, "abs": 0.05}
