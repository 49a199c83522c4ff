"""Limits in words for the page, in the form of all other displays; rows have their states alone."""

from collections.abc import Sequence

from amt_stream.core.json_types import JsonDict, JsonMap
from amt_stream.meters.limits import Limit, limit_of
from amt_stream.meters.rows.limit_words import (
    forecast_words,
    state_of,
    state_words,
    value_words,
)
from amt_stream.service.message import Message


def limit_texts(newest: Sequence[Message]) -> list[Message]:
    """The limits of each microphone, by the newest header and rows."""
    headers = [one.content for one in newest if one.kind == "header"]
    limits = [limit_of(one) for header in headers for one in header.get("limits", ())]
    rows = [one for one in newest if one.kind == "row"] if limits else []
    return [_message(row, limits) for row in rows]


def _message(row: Message, limits: Sequence[Limit]) -> Message:
    of = [_texts(row, limit) for limit in limits]
    return Message("limits", {"microphone": row.microphone, "of": of})


def _texts(row: Message, limit: Limit) -> JsonDict:
    values: JsonMap = row.content
    return {
        "name": limit.name,
        "state": state_of(limit, values),
        "word": state_words(limit, values),
        "value": value_words(limit, values),
        "without": value_words(limit, {}),
        "more": forecast_words(limit, values),
    }
