import threading
import time

import numpy as np
import pytest

from amt_stream.engine import Fault, SampleRing

FOR_EVER_S = 3600.0  # a test that sleeps so long is ended by pytest's own limit


def read_all(ring: SampleRing, size: int = 1000):
    """Everything that waits, as (samples, lost before them, flags) pieces."""
    pieces = []
    while True:
        out = np.empty((size, 1), np.float32)
        copied, lost, flags = ring.read(out)
        if not copied and not lost:
            return pieces
        pieces.append((out[:copied, 0].tolist(), lost, flags))


def ramp(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.float32)[:, None]


def test_what_goes_in_comes_out_around_the_edge():
    ring = SampleRing(fs=10, channels=1)
    for first in range(0, 70, 7):
        ring.write(ramp(first, 7))
        assert read_all(ring, size=3) == [
            (list(range(first, first + 3)), 0, 0),
            (list(range(first + 3, first + 6)), 0, 0),
            ([first + 6], 0, 0),
        ]
    assert (ring.position, ring.lost, ring.fill) == (70, 0, 0)


def test_what_does_not_fit_is_dropped_and_its_place_is_kept():
    ring = SampleRing(fs=10, channels=1)
    ring.write(ramp(0, 8))
    ring.write(ramp(8, 8))
    ring.write(ramp(16, 8))
    assert (ring.position, ring.lost, ring.overflows) == (24, 14, 2)
    assert read_all(ring) == [(list(range(10)), 0, 0)]
    ring.write(ramp(24, 3))
    assert read_all(ring) == [([24, 25, 26], 14, Fault.GAP | Fault.OVERLOAD)]


def test_loss_reported_by_the_source_stands_before_its_block():
    ring = SampleRing(fs=100, channels=1)
    ring.write(ramp(0, 5))
    ring.write(ramp(12, 2), lost=7)
    ring.write(ramp(14, 1), flags=Fault.OVERLOAD)
    assert read_all(ring) == [
        ([0, 1, 2, 3, 4], 0, 0),
        ([12, 13], 7, Fault.GAP),
        ([14], 0, Fault.OVERLOAD),
    ]
    assert ring.position == 15


def test_what_is_lost_at_the_end_is_told_when_the_writer_has_ended():
    ring = SampleRing(fs=10, channels=1)
    ring.write(ramp(0, 25))
    ring.write(ramp(0, 0), lost=3)
    assert read_all(ring) == [(list(range(10)), 0, 0)]
    assert ring.rest() == (0, 18, Fault.GAP | Fault.OVERLOAD)
    assert ring.rest() == (0, 0, 0)


def test_room_for_notes_used_up_costs_samples_but_never_the_count():
    ring = SampleRing(fs=1000, channels=1)
    for n in range(200):
        ring.write(ramp(2 * n + 1, 1), lost=1)
    seen = sum(len(samples) + lost for samples, lost, _ in read_all(ring))
    ring.write(ramp(400, 1))
    (last,) = read_all(ring)
    assert last[0] == [400]
    assert seen + last[1] + 1 == ring.position == 401


def test_a_block_larger_than_the_ring_is_not_an_error():
    ring = SampleRing(fs=10, channels=1)
    ring.write(ramp(0, 25))
    ring.write(ramp(25, 1))
    assert ring.position == 26
    assert read_all(ring) == [(list(range(10)), 0, 0)]


@pytest.mark.parametrize("capacity_s", [0.05, 1.0])
def test_two_threads_hammering(capacity_s):
    """Each sample is its own position, so any slip of position shows."""
    ring = SampleRing(fs=48000, channels=2, capacity_s=capacity_s)
    sizes = np.random.default_rng(0).integers(1, 900, 3000).tolist()
    total = sum(sizes)
    finished = threading.Event()

    def write() -> None:
        position = 0
        for i, size in enumerate(sizes):
            block = np.arange(position, position + size, dtype=np.float64) % 2**20
            ring.write(np.repeat(block[:, None], 2, axis=1).astype(np.float32))
            position += size
            if i % 16 == 0:
                time.sleep(0.0002)
        finished.set()

    writer = threading.Thread(target=write)
    writer.start()
    position, out = 0, np.empty((700, 2), np.float32)
    while True:
        ended = finished.is_set()
        copied, lost, _ = ring.read(out)
        position += lost
        expected = np.arange(position, position + copied) % 2**20
        np.testing.assert_array_equal(out[:copied], np.repeat(expected[:, None], 2, axis=1))
        position += copied
        if ended and not copied and not lost:
            break
    writer.join()
    ring.write(np.zeros((1, 2), np.float32))  # brings out a gap at the very end
    copied, lost, _ = ring.read(out)
    assert position + lost + copied == total + 1 == ring.position


def test_the_reader_sleeps_until_its_block_is_there():
    ring, found = SampleRing(fs=1000, channels=1), []

    def read():
        ring.wait(5, 30.0)
        found.append(ring.fill)

    reader = threading.Thread(target=read)
    reader.start()
    for first in range(0, 4, 2):
        ring.write(ramp(first, 2))
    reader.join(0.05)
    assert reader.is_alive()
    ring.write(ramp(4, 2))
    reader.join(20.0)
    assert found == [6]


def test_the_reader_does_not_sleep_where_its_block_is_there_or_it_was_woken():
    ring = SampleRing(fs=1000, channels=1)
    ring.write(ramp(0, 3))
    ring.wait(3, FOR_EVER_S)
    ring.wake()
    ring.wake()
    ring.wait(4, FOR_EVER_S)
    ring.wait(4, 0.01)
    assert ring.fill == 3
