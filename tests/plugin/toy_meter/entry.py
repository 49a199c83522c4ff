"""A meter of another package: the words of its entry, without torch."""

from amt_stream.catalog import Entry

ENTRY = Entry(
    name="toy",
    title="Toy & Sons",
    method="mean square over 10 ms: no method that anybody published",
    model="toy_meter.model:MeanSquare",
    readings="toy_meter.readings:MeanSquareReadings",
    settings={"field": ("free", "diffuse")},
    checks="toy_meter.checks",
)
