"""Sessions: logs of measurements in folders, which survive what happens to whoever writes them."""

from amt_stream.formats import LOG_FORMATS, SOUND_FORMATS, LogFormat, SoundFormat
from amt_stream.session.files import SessionError
from amt_stream.session.log import SessionLog, SoundLog
from amt_stream.session.reading import Session
from amt_stream.session.saving import save_session
from amt_stream.session.verify import Verdict, verify

__all__ = ["LOG_FORMATS", "SOUND_FORMATS", "LogFormat", "Session", "SessionError", "SessionLog"]
__all__ += ["SoundFormat", "SoundLog", "Verdict", "save_session", "verify"]
