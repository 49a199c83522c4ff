from .files import SessionError as SessionError
from .log import SessionLog as SessionLog
from .reading import Session as Session
from .saving import save_session as save_session
from .sound_log import SoundLog as SoundLog
from .verify import Verdict as Verdict
from .verify import verify as verify
