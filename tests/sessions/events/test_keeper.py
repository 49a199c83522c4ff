"""Files of events of sound: where they begin and end, what is in them, what they say."""

import numpy as np
import pytest

from amt_stream.dsp.stages import SoundLevel
from amt_stream.engine import Engine, PushSource
from amt_stream.engine.inputs.sound_file import calibrations_in
from amt_stream.meters.frames import Chunk
from amt_stream.sessions import SessionError
from amt_stream.sessions.events import SoundKeeper
from amt_stream.sessions.events.memory import SoundMemory
from tests.sessions.events.conftest import BURSTS, FS, FULL_SCALE_DB, bursts, in_24_bits, read

STEP = FS // 100

# From 94 dB: a level F has risen to 85 dB after this, and fallen to 82 dB after that.
RISES_S = -0.125 * np.log(1 - 10 ** ((85 - 94) / 10))
FALLS_S = 0.125 * np.log(10 ** ((94 - 82) / 10))


def test_each_burst_is_a_file_from_its_pre_roll_on(heard):
    x = bursts()
    keeper, told = heard(x, "laf_db>85", before_s=2.0, after_s=1.0)
    paths = sorted(keeper.folder.iterdir())
    assert len(paths) == keeper.files == len(told) == len(BURSTS)
    assert [event.text.rpartition(" ")[2] for event in told] == [str(path) for path in paths]
    assert not keeper.note
    for path, event, (begin, end) in zip(paths, told, BURSTS, strict=True):
        samples, about = read(path)
        spotted = about["event"]
        assert abs(spotted["begin_sample"] - (begin + RISES_S) * FS) <= STEP
        assert abs(spotted["end_sample"] - (end + FALLS_S) * FS) <= STEP
        assert spotted["value"] == pytest.approx(94, abs=0.1 if end - begin >= 1 else 0.5)
        first = spotted["begin_sample"] - 2 * FS
        stop = spotted["end_sample"] + FS
        assert (about["sample"], about["samples"]) == (first, stop - first)
        assert (event.kind, event.sample, event.samples) == ("sound_kept", first, stop - first)
        np.testing.assert_array_equal(samples, in_24_bits(x[first:stop]))
        assert (about["gaps"], about["cut"], about["invalid"]) == ([], 0, 0)
        assert about["header"]["calibration"][0]["full_scale_db_spl"] == FULL_SCALE_DB
        assert about["header"]["kept_sound_s"] == 60
        assert about["header"]["events"] == [
            {key: spotted[key] for key in ("name", "column", "above", "hysteresis", "hold_s")}
        ]
        columns = about["trace"]["columns"]
        rows = [dict(zip(columns, row, strict=True)) for row in about["trace"]["rows"]]
        assert [row["sample"] for row in rows] == list(range(-(-first // STEP) * STEP, stop, STEP))
        above = [row["sample"] for row in rows if row["laf_db"] > 85]
        assert above[0] == spotted["begin_sample"]


def test_lost_samples_are_silence_and_told(heard):
    x = bursts(9.0)
    # Within the first burst, and 3 s before it.
    keeper, _ = heard(x, "laf_db>85", lost=((630, 4800), (300, 96)), before_s=5.0)
    (path,) = keeper.folder.iterdir()
    samples, about = read(path)
    gaps = about["gaps"]
    assert [count for _, count in gaps] == [96, 4800]
    places = [about["sample"] + place for place, _ in gaps]
    assert places == [300 * 480, 630 * 480 + 96]
    whole = np.concatenate(
        [x[: 300 * 480], np.zeros((96, 2)), x[300 * 480 : 630 * 480], np.zeros((4800, 2)),
         x[630 * 480 :]]
    )  # fmt: skip
    expected = whole[about["sample"] : about["sample"] + about["samples"]]
    np.testing.assert_array_equal(samples, in_24_bits(expected))


def test_what_goes_on_for_long_is_in_several_files_and_no_longer_than_was_said(heard):
    x = bursts()
    keeper, _ = heard(x, "laf_db>30", keep_s=3.0, before_s=1.0, longest_s=10.0)
    found = [read(path) for path in sorted(keeper.folder.iterdir())]
    assert [about["event"]["part"] for _, about in found] == [1, 2, 3, 4]
    first = found[0][1]["event"]["begin_sample"]
    assert first < 10 * STEP
    np.testing.assert_array_equal(
        np.concatenate([samples for samples, _ in found]), in_24_bits(x[: first + 10 * FS])
    )


def test_a_long_gap_ends_a_file_and_begins_another(heard):
    x = bursts(7.2)
    keeper, _ = heard(x, "laf_db>85", lost=((650, 30 * FS),), before_s=1.0)
    found = [read(path) for path in sorted(keeper.folder.iterdir())]
    (before, one), (after, two) = found
    assert (one["event"]["part"], two["event"]["part"]) == (1, 2)
    assert one["sample"] + len(before) == 650 * 480
    assert two["sample"] == 650 * 480 + 30 * FS
    np.testing.assert_array_equal(after, in_24_bits(x[650 * 480 : 650 * 480 + len(after)]))


def test_replay_gives_the_last_seconds(heard):
    x = bursts(8.0)
    keeper, told = heard(x, keep_s=5.0, close=False)
    for seconds, count in ((2.5, 2.5), (None, 5.0), (100.0, 5.0)):
        path = keeper.replay(seconds)
        samples, about = read(path)
        np.testing.assert_array_equal(samples, in_24_bits(x[-round(count * FS) :]))
        assert about["event"] is None
        assert about["trace"]["rows"][0][2] == about["sample"]
        assert told[-1].text.endswith(str(path))
    assert keeper.close(20)
    with pytest.raises(SessionError, match=r"no file in .*: the measurement has ended"):
        keeper.replay()
    assert not list(keeper.folder.glob(".*"))


@pytest.fixture
def full_disk():
    """Lets no file of this process grow beyond so many bytes, as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size=None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (before[0] if size is None else size, before[1]))

    yield limit
    limit()


def test_a_disk_that_takes_nothing_ends_nothing(heard, full_disk):
    """A folder that is gone is made anew, and nothing half-written stays."""
    full_disk(1000)
    keeper, told = heard(bursts(8.0), "laf_db>85", close=False)
    with pytest.raises(SessionError, match=r"no file in .*: File too large"):
        keeper.replay()
    full_disk()
    assert "could not be written to" in keeper.note
    assert "File too large; the measurement continues" in keeper.note
    assert (told, keeper.files, [*keeper.folder.iterdir()]) == ([], 0, [])
    keeper.folder.rmdir()
    assert keeper.replay(1.0).exists()
    assert (keeper.note, keeper.files) == ("", 1)
    assert keeper.close(20)


def test_what_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="file cannot be written: File exists"):
        SoundKeeper(tmp_path / "file", None, fs=FS, channels=2)
    with pytest.raises(SessionError, match="FLAC stores at most 8 channels"):
        SoundKeeper(tmp_path / "new", None, fs=FS, channels=9)
    with pytest.raises(SessionError, match=r"70 s before an event, and 60 s"):
        SoundKeeper(tmp_path / "new", None, fs=FS, channels=2, before_s=70)


def test_the_window_says_that_sound_is_kept(heard):
    from amt_stream.views.status_text import status_text

    keeper, _ = heard(bursts(0.1))
    engine = Engine(PushSource(FS, 2), SoundLevel(FS), [keeper])
    words = "the last 60 s of sound are in memory"
    assert words in status_text(engine, engine.health)
    other = Engine(PushSource(FS, 2), SoundLevel(FS))
    assert words not in status_text(other, other.health)


def chunks(x, size):
    return [Chunk(x[at : at + size], at, at / FS) for at in range(0, len(x), size)]


@pytest.mark.parametrize("size", [1, 480, 8193, 100_000])
def test_memory_holds_the_last_seconds_and_no_more(size):
    x = bursts(0.3 if size == 1 else 6.0)
    memory = SoundMemory(FS, 2, 0.2 if size == 1 else 2.0)
    for number, chunk in enumerate(chunks(x, size)):
        memory.add(chunk)
        if number % 97:
            continue
        held = sum(len(piece) for piece in (*memory._pieces, *memory._open))
        assert held <= memory._most + max(memory._piece, size) + size
        assert len(memory._pieces) + len(memory._open) <= 21 + memory._piece // size
    most = memory._most
    assert (memory.first, memory.end) == (len(x) - most, len(x))
    whole = memory.between(0, len(x))
    assert (whole.start, len(whole), whole.gaps) == (len(x) - most, most, [])
    np.testing.assert_array_equal(np.concatenate([*whole.blocks()]), x[-most:])
    some = memory.between(len(x) - 1000, len(x) - 7)
    np.testing.assert_array_equal(np.concatenate([*some.blocks()]), x[-1000:-7])
    assert some.utc == pytest.approx((len(x) - 1000) / FS)
    assert memory.between(0, 10) is None


def test_the_last_seconds_go_elsewhere_with_their_calibration(heard, tmp_path):
    x = bursts(3.0)
    keeper, told = heard(x, close=False)
    path = keeper.write_last(tmp_path / "elsewhere", 1.5)
    samples, _ = read(path)
    np.testing.assert_array_equal(samples, in_24_bits(x[-FS * 3 // 2 :]))
    stored = calibrations_in(path)
    assert [stored[channel].full_scale_db_spl for channel in (1, 2)] == [FULL_SCALE_DB] * 2
    assert keeper.files == len(told) == 0
    assert keeper.close(20)
