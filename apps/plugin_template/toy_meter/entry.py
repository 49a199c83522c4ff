"""The entry: the meter in words. It is imported for every `--help`, so it imports nothing heavy."""

from amt_stream.meters.catalog import Entry

ENTRY = Entry(
    name="toy",
    title="Toy & Sons",
    method="mean square over 10 ms: no method that anybody published",
    model="toy_meter.model:MeanSquare",
    readings="toy_meter.readings:MeanSquareReadings",
    # The first word has to be the default of the model: it is not passed where nobody chooses.
    settings={"field": ("free", "diffuse")},
    checks="toy_meter.checks",
    # No `pane`: the window makes a plain one, with the first reading large and the others small.
)
