"""What a station that is not well says on standard error."""

from amt_stream.cli.complaints import GONE_S, Complaints


def test_each_is_said_once_while_it_holds_and_at_last_that_none_is_left(capsys):
    complaints = Complaints()
    heard = [
        (0.0, []),
        (1.0, ["the broker does not answer", "3 samples were lost"]),
        (2.0, ["4 samples were lost"]),
        (1.0 + GONE_S / 2, ["the broker does not answer"]),
        (1.0 + 2 * GONE_S, []),
        (2.0 + 2 * GONE_S, []),
        (3.0 + 2 * GONE_S, ["5 samples were lost"]),
    ]
    for now, sentences in heard:
        complaints.report(sentences, now)
    told = capsys.readouterr().err.splitlines()
    assert sorted(told[:2]) == [
        "amt-stream: 3 samples were lost",
        "amt-stream: the broker does not answer",
    ]
    assert told[2:] == ["amt-stream: all is well again", "amt-stream: 5 samples were lost"]
