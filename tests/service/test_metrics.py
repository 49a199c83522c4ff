"""`/metrics`, read with Prometheus's own parsers."""

import itertools
import json
import math
import re
import time
import urllib.request

import numpy as np
import pytest
import soundfile
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from amt_stream.meters.calibration import Calibration
from amt_stream.meters.rows import column_named
from amt_stream.meters.rows.header import calibrations
from amt_stream.service.identity import Identity
from amt_stream.service.message import Message
from amt_stream.service.metrics import COUNTERS, GAUGES, Metrics, metric_name
from tests.service.served import ROOT, Served, is_row

FS, FULL_SCALE_DB = 48000, 94.0
DASHBOARD = ROOT / "docs" / "grafana.json"


class Scrape:
    """Samples by name and labels."""

    def __init__(self, address, accept="text/plain"):
        request = urllib.request.Request(f"{address}metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=20) as response:
            self.kind, text = response.headers["Content-Type"], response.read().decode()
        parse = openmetrics if "openmetrics" in self.kind else plain
        families = list(parse(text))
        self.types = {one.name: one.type for one in families}
        self.samples = {
            (one.name, *sorted(one.labels.items())): one.value
            for family in families
            for one in family.samples
        }

    def __call__(self, name, **labels):
        return self.samples[name, *sorted(labels.items())]


KEPT_S = 0.3  # older numbers are told to nobody


def laeq_db(before, after, channel):
    """As Prometheus would: 10 * log10(rate(exposure) / 4e-10), by the time of the sound."""
    name, labels = (
        "amt_sound_exposure_pascal2_seconds_total",
        {"weighting": "A", "microphone": "main"},
    )
    energy = after(name, channel=channel, **labels) - before(name, channel=channel, **labels)
    seconds = after("amt_sound_measured_seconds_total", microphone="main")
    seconds -= before("amt_sound_measured_seconds_total", microphone="main")
    return 10 * math.log10(energy / seconds / 4e-10)


def test_exposure_is_right_across_missed_scrapes(tmp_path):
    # A tone that A-weighting leaves alone, at another level every 0.4 s, the right one 6 dB lower.
    time_s = np.arange(FS * 30) / FS
    levels_db = np.random.default_rng(1).uniform(-40, -3, 75)[(time_s / 0.4).astype(int)]
    left = np.sqrt(2) * 10 ** (levels_db / 20) * np.sin(2 * np.pi * 1000 * time_s) / np.sqrt(2)
    path = tmp_path / "tone.wav"
    soundfile.write(path, np.stack([left, left / 2], 1), FS, subtype="FLOAT")
    asked = ["--model", "spl,moore2016", "--source", str(path), "--columns", "laf_db,laeq*,ltl*"]
    asked += ["--full-scale-db", str(FULL_SCALE_DB), "--limit", "laeq_db>60"]
    with Served(*asked, "--web", "0") as served:
        address = served.address
        served.until(is_row)
        scrapes = []
        for k in range(5):
            served.until(lambda m, at_s=(k + 1) * 0.5: is_row(m) and m["time_s"] > at_s)
            if k == 1:
                assert served.ask("reset_readings")["done"]
            if k % 2 == 0:  # the others are missed
                scrapes.append(Scrape(address))
        for before, after in itertools.pairwise(scrapes):
            ends = [
                one("amt_sound_measured_seconds_total", microphone="main")
                for one in (before, after)
            ]
            assert 0.5 < ends[1] - ends[0] < 10
            begin, end = (round(one * FS) for one in ends)
            for channel, sound in (("L", left), ("R", left / 2)):
                pascal2 = np.mean(sound[begin:end] ** 2) * 2 * 4e-10 * 10 ** (FULL_SCALE_DB / 10)
                plain_db = 10 * math.log10(pascal2 / 4e-10)
                assert laeq_db(before, after, channel) == pytest.approx(plain_db, abs=0.05)
        _other_numbers(Scrape(address), scrapes[0])
        assert served.ask("pause")["done"]
        served.until(is_row)
        time.sleep(KEPT_S)
        held = Scrape(address)
        served.until(is_row)
        again = Scrape(address)
        grows = "amt_sound_measured_seconds_total"
        assert held(grows, microphone="main") == again(grows, microphone="main")
        asked = Scrape(address, "application/openmetrics-text; version=1.0.0")
        assert asked.kind.startswith("application/openmetrics-text")
        assert {*asked.samples} == {*again.samples}
        _dashboard_asks_for_what_there_is(again)
        rules = (ROOT / "docs" / "station.md").read_text().partition("groups:")[2].partition("```")
        asked_for = set(re.findall(r"\bamt_\w+", " ".join(re.findall("expr: (.*)", rules[0]))))
        assert asked_for <= set(again.types), asked_for - set(again.types)
        assert served.ask("stop")["done"]
        time.sleep(KEPT_S)
        assert not any("ltl" in name for name, *_ in Scrape(address).samples)


def _other_numbers(scrape, before):
    assert scrape("amt_loudness_ltl_sone", microphone="main", channel="") > 0
    for channel in ("", "L", "R"):
        assert scrape("amt_sound_laeq_db", microphone="main", channel=channel) > 40
    assert scrape("amt_calibrated", microphone="main") == 1
    assert scrape("amt_state", state="measuring") == 1
    assert scrape("amt_state", state="failed") == 0
    assert sum(v for (name, *_), v in scrape.samples.items() if name == "amt_limit") == 1
    assert scrape("amt_audio_samples_total") > before("amt_audio_samples_total")
    assert scrape("amt_audio_overruns_total") == 0
    assert scrape("amt_transport_missed_rows_total", transport="stdio") == 0
    of = {"microphone": "main", "model": "moore2016"}
    count = scrape("amt_loudness_distribution_sone_count", **of)
    assert scrape("amt_loudness_distribution_sone_bucket", le="+Inf", **of) == count
    # A frame each millisecond.
    measured_s = scrape("amt_sound_measured_seconds_total", microphone="main")
    assert count == pytest.approx(1000 * measured_s, abs=600)
    assert scrape.types["amt_loudness_distribution_sone"] == "histogram"


def _dashboard_asks_for_what_there_is(scrape):
    names = {name for name, *_ in scrape.samples} | {*scrape.types}
    labels = {key for _, *labels in scrape.samples for key, _ in labels} | {"station", "le"}
    text = DASHBOARD.read_text()
    assert json.loads(text)["title"]
    asked = " ".join(re.findall(r'"expr": "(.*)"', text))
    for one in re.findall(r"\bamt_\w+", asked):
        assert one in names, one
    for one in re.findall(r"\b(?:by|on) \((.*?)\)", asked):
        assert labels >= set(one.split(", ")), one


def test_each_row_has_numbers_of_its_own(tmp_path):
    path, sine = tmp_path / "tone.wav", np.sin(2 * np.pi * 1000 * np.arange(FS * 30) / FS)
    soundfile.write(path, np.stack([sine / 10, sine / 20], 1), FS, subtype="FLOAT")
    rows = ["-c", "desk=1", "-c", "door=2", "--full-scale-db", "94"]
    asked = ["--model", "spl", "--source", str(path), "--columns", "laeq_db", *rows]
    with Served(*asked, "--web", "0") as served:
        address = served.address
        served.until(lambda m: is_row(m) and m["time_s"] > 1)
        scrape = Scrape(address)
    for row, level_db in (("desk", 74), ("door", 68)):
        assert scrape("amt_sound_laeq_db", microphone=row, channel="") == pytest.approx(
            level_db, abs=0.1
        )
        assert scrape("amt_valid", microphone=row) == 1
        labels = {"microphone": row, "channel": "", "weighting": "C"}
        energy = scrape("amt_sound_exposure_pascal2_seconds_total", **labels)
        seconds = scrape("amt_sound_measured_seconds_total", microphone=row)
        lceq_db = 10 * math.log10(energy / seconds / 4e-10)
        assert lceq_db == pytest.approx(level_db, abs=0.1)


def test_calibrations_and_the_clock_are_told_as_soon_as_they_are_known():
    metrics = Metrics(Identity("roof", {"city": "Graz"}))
    given = [
        Calibration(94.0, "a tone", "2026-01-01T12:00:00Z", valid_days=365),
        Calibration(94.0, "a tone", "2026-01-02T00:00:00+02:00"),
        Calibration(94.0, "a tone", "in spring"),
        Calibration(100.0, "assumed", calibrated=False),
    ]
    source = {"microphones": {"desk": [1, 4], "door": [5, 6]}}
    header = {"source": source, "calibration": calibrations(given, [1, 4, 5, 6])}
    metrics.send(Message("header", header))

    def told(ppm):
        health = dict.fromkeys((*COUNTERS, *GAUGES), 0) | {"clock_ppm": ppm}
        metrics.send(Message("state", {"state": "measuring", "health": health}))
        return {
            (one.name, *(one.labels.get(key) for key in ("microphone", "input"))): one.value
            for family in metrics.collect()
            for one in family.samples
            if one.labels.items() >= {"station": "roof", "city": "Graz"}.items()
        }

    first, later = told(None), told(-12.5)
    for found in (first, later):
        assert {key: value for key, value in found.items() if "calibration" in key[0]} == {
            ("amt_calibration_timestamp_seconds", "desk", "1"): 1767268800,
            ("amt_calibration_timestamp_seconds", "desk", "4"): 1767304800,
            ("amt_calibration_due_timestamp_seconds", "desk", "1"): 1767268800 + 365 * 86400,
        }
    assert ("amt_audio_clock_drift_ppm", None, None) not in first
    assert later["amt_audio_clock_drift_ppm", None, None] == -12.5


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("ltl_sone", ("loudness_ltl_sone", "")),
        ("zwicker_n_left_sone", ("loudness_zwicker_n_sone", "L")),
        ("laeq_15min_right_db", ("sound_laeq_15min_db", "R")),
        ("momentary_lufs", ("programme_momentary_lufs", "")),
    ],
)
def test_a_column_has_a_name_and_a_channel(column, named):
    assert metric_name(column_named(column).to_dict()) == named


def test_a_column_of_an_unknown_unit_keeps_its_name():
    assert metric_name({"name": "other", "unit": ""}) == ("other", "")


@pytest.mark.parametrize(
    ("named", "clipped"),
    [("", set()), ("laf_db", {"laf_db"}), ("all", {"laf_db", "lceq_minus_laeq_db"})],
)
def test_a_reading_that_includes_clipped_sound_says_so(named, clipped):
    names = "laf_db", "lceq_minus_laeq_db", "integrated_lufs"
    columns = [column_named(name).to_dict() for name in names]
    metrics = Metrics()
    metrics.send(Message("header", {"columns": columns, "statistics": {"spl": {}}}))
    row = {"fault": "", "valid": True, "settling": False, "calibrated": True, "utc": None}
    metrics.send(Message("row", row | dict.fromkeys(names, 1.0) | {"clipped_columns": named}))
    (family,) = (one for one in metrics.collect() if one.name == "amt_reading_clipped")
    assert {one.labels["reading"] for one in family.samples} == clipped
