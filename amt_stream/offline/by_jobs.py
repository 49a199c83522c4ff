"""Frames of a whole sound, by one process or several."""

from collections.abc import Iterator

from amt_stream.core.importing import has_torch
from amt_stream.meters.frames import Frames
from amt_stream.offline.analysis import Analysis
from amt_stream.offline.jobs import refuse_jobs


def analyze_in_jobs(analysis: Analysis, jobs: int) -> Iterator[Frames]:
    """`Analysis.whole`, in several processes if the sound is long enough."""
    refuse_jobs(jobs)
    if jobs < 2 or not has_torch():  # compiled models are fast, and have no parts to be joined
        return analysis.whole()
    from amt_stream.offline.split import analyze_split

    return analyze_split(analysis, jobs)
