"""Results of measurements, read from logs and files, and statistics of parts of them."""

from amt_stream.sessions.results.reading import Wanted as Wanted
from amt_stream.sessions.results.reading import read_results as read_results
from amt_stream.sessions.results.results import EXCLUDED as EXCLUDED
from amt_stream.sessions.results.results import GAPS as GAPS
from amt_stream.sessions.results.results import MARK as MARK
from amt_stream.sessions.results.results import UNCALIBRATED_SOUND as UNCALIBRATED_SOUND
from amt_stream.sessions.results.results import FaultySpan as FaultySpan
from amt_stream.sessions.results.results import Results as Results
from amt_stream.sessions.results.results import ResultsError as ResultsError
from amt_stream.sessions.results.results import column_of as column_of
