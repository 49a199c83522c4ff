"""The page of measurements of the STI at several positions."""

from collections.abc import Sequence

from amt_stream.dsp.stipa_signal import MODULATIONS, OCTAVES
from amt_stream.meters.accumulators.sti import category
from amt_stream.sessions.report.content import About
from amt_stream.sessions.report.page import cell, escaped, head, heads, html, html_table
from amt_stream.sessions.results.stipa_positions import StiPosition, overall

TITLE = "Speech transmission index"
METHOD = (
    "The direct method of IEC 60268-16 with the STIPA test signal, weights of male speech of "
    "edition 5. The text of the standard was not at hand."
)


def stipa_page(positions: Sequence[StiPosition]) -> str:
    """Positions with STI and octaves, their mean and the lowest, as self-contained HTML."""
    days = sorted({one.utc[:10] for one in positions})
    under = " to ".join(dict.fromkeys((days[0], days[-1])))
    badges = [] if all(one.calibrated for one in positions) else ["NOT CALIBRATED"]
    parts = [head(About(title=TITLE), under, badges), _overall(positions), _table(positions)]
    parts += [_octaves(one) for one in positions]
    basis = dict.fromkeys(f"{one.basis[0].upper()}{one.basis[1:]}." for one in positions)
    parts.append(f'<p class="foot">{escaped(" ".join([METHOD, *basis]))}</p>\n')
    return html(f"{TITLE}: {under}", "".join(parts))


def _overall(positions: Sequence[StiPosition]) -> str:
    found = overall(list(positions))
    if found is None:
        return '<p class="doubt">No position has a valid STI.</p>\n'
    cells = [
        f'<td><span class="second">{escaped(words)}</span><br><span class="large">{value:.2f}'
        f"</span> {category(value)}</td>"
        for words, value in (
            (f"mean of {found.number}", found.mean),
            (f"lowest: {found.where}", found.lowest),
        )
    ]
    return f'<table class="numbers"><tr>{"".join(cells)}</tr></table>\n'


def _table(positions: Sequence[StiPosition]) -> str:
    rows = [heads(("Position", "STI", "±", "Category", "Measured for", "Not valid, as"))]
    for one in positions:
        value = "no signal" if one.no_signal else f"{one.sti:.2f}"
        letter = "" if one.no_signal else category(one.sti)
        deviation = "" if one.no_signal else f"{one.sd:.3f}"
        texts = [one.name, value, deviation, letter, f"{one.seconds:g} s"]
        rows.append([*map(cell, texts), cell("; ".join(one.reasons), "doubt")])
    return f"<h2>Positions</h2>{html_table(rows)}\n"


def _octaves(one: StiPosition) -> str:
    """Modulation transfer and level by octave."""
    noise: Sequence[float | None] = one.noise_db or [None] * len(OCTAVES)
    unit = "dB SPL" if one.calibrated else "dB, not calibrated"
    names = "Octave in Hz", "m1", "m2", "MTI", f"Level in {unit}", "Noise added in dB SPL"
    rows = [heads(names)]
    for k, (*transfer, mti, level) in enumerate(one.octaves):
        values = [f"{m} at {f:g} Hz" for m, f in zip(transfer, MODULATIONS[k], strict=True)]
        added = "" if noise[k] is None else f"{noise[k]:.1f}"
        texts = [str(OCTAVES[k]), *values, mti, level, added]
        rows.append([*map(cell, texts)])
    return f"<h2>{escaped(one.name)}: {escaped(one.words)}</h2>{html_table(rows)}\n"
