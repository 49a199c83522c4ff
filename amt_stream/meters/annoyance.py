"""Psychoacoustic annoyance, from percentiles of loudness, sharpness and modulation."""

from collections.abc import Mapping
from itertools import product
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amt_stream.meters.names import SIDES, NameForm

Form = Literal["zwicker", "more", "di"]

INPUTS = {
    "n5": NameForm("zwicker_n5{side}_sone"),
    "sharpness": NameForm("sharpness_s5{side}_acum"),
    "roughness": NameForm("ecma_roughness_r5{side}_asper"),
    "fluctuation": NameForm("ecma_fluctuation_f5{side}_vacil"),
}
TONAL_INPUTS = INPUTS | {"tonality": NameForm("ecma_tonality_t5{side}_tu")}
"""The readings that annoyance is made of, by argument."""

ANNOYANCE = NameForm("annoyance_{form}{side}", form=get_args(Form))


def psychoacoustic_annoyance(
    n5: ArrayLike,
    sharpness: ArrayLike,
    roughness: ArrayLike,
    fluctuation: ArrayLike,
    tonality: ArrayLike = 0.0,
    form: Form = "zwicker",
) -> NDArray[np.float64]:
    """Psychoacoustic annoyance, a number without unit; arrays are taken element by element.

    n5: loudness exceeded in 5 % of the time, in sone
    sharpness: in acum
    roughness: in asper
    fluctuation: fluctuation strength in vacil
    tonality: in tu; only for "more" and "di"
    form: "zwicker" (Fastl & Zwicker 2007, Psychoacoustics, eq. 16.1 to 16.3; by Widmann 1992),
        "more" (More 2010, Aircraft noise characteristics and metrics, Purdue University, p. 204),
        or "di" (Di et al. 2016, Applied Acoustics 105, 164-170, eq. 9)

    The logarithm is that to base 10. The authors took N5 and sharpness by Zwicker's method, and the
    tonality of Aures; they leave open which percentiles of the others to take, and the fifth is
    usual. Where More's root would be of a negative number, of dull steady sounds, it is 0. Silence
    has no annoyance. Raises ValueError for another form.

    >>> float(psychoacoustic_annoyance(10.0, 2.75, 0.0, 0.0).round(4))
    13.2526
    """
    if form not in get_args(Form):
        raise ValueError(f"form is {form!r}: give {', '.join(get_args(Form))}")
    n, s, r, f, k = np.broadcast_arrays(
        *(np.asarray(v, np.float64) for v in (n5, sharpness, roughness, fluctuation, tonality))
    )
    loud = np.where(n > 0, n, 1.0)
    sharp = np.square(np.maximum(s - 1.75, 0) * 0.25 * np.log10(n + 10))
    modulated = np.square(2.18 / loud**0.4 * (0.4 * f + 0.6 * r))
    if form == "more":
        tonal = np.square((1 - np.exp(-0.29 * n)) * (1 - np.exp(-5.49 * k)))
        weights = -0.16 + 11.48 * sharp + 0.84 * modulated + 1.25 * tonal
    elif form == "di":
        weights = sharp + modulated + np.square(6.41 / loud**0.52 * k)
    else:
        weights = sharp + modulated
    found: NDArray[np.float64] = n * (1 + np.sqrt(np.maximum(weights, 0)))
    return found


def inputs_of(name: str) -> dict[str, str]:
    """The readings that `annoyance_zwicker_left` and the like are made of, by argument."""
    parts = ANNOYANCE.read(name)
    assert parts is not None
    inputs = INPUTS if parts["form"] == "zwicker" else TONAL_INPUTS
    return {key: one.write(side=parts["side"]) for key, one in inputs.items()}


def annoyance_from(name: str, readings: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """Annoyance of this name from its readings by name; NaN where one of them is not finite."""
    parts, inputs = ANNOYANCE.read(name), inputs_of(name)
    assert parts is not None
    form: Form = parts["form"]  # type: ignore[assignment]
    given = np.stack([np.asarray(readings[one], np.float64) for one in inputs.values()])
    whole = np.isfinite(given).all(0)
    known = dict(zip(inputs, np.where(whole, given, 0.0), strict=True))
    return np.where(whole, psychoacoustic_annoyance(**known, form=form), np.nan)


def annoyances(readings: Mapping[str, float | None]) -> dict[str, float | None]:
    """Annoyance from a summary that has its readings: `annoyance_zwicker`, and other forms.

    It takes N5 and S5 of the meter `zwicker`, R5, F5 and for "more" and "di" T5 of ECMA-418-2, of
    both ears and of each: of two channels, loudness, sharpness and tonality are the higher ones.
    """
    found: dict[str, float | None] = {}
    for side, form in product(("", *SIDES), get_args(Form)):
        name = ANNOYANCE.write(form=form, side=side)
        inputs = inputs_of(name).values()
        if readings.keys() >= set(inputs):
            given = {one: np.nan if (v := readings[one]) is None else v for one in inputs}
            value = float(annoyance_from(name, given))
            found[name] = None if np.isnan(value) else value
    return found
