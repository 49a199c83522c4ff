"""The page in a real browser: what it shows is what the rows say."""

import contextlib
import http.server
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image
from websockets.sync.client import connect

from amt_stream.meters.rows import column_named, reading_text
from amt_stream.meters.rows.captions import caption_of, row_text
from amt_stream.meters.state_signs import signs_script
from amt_stream.service.message import Message
from amt_stream.service.page.pipe import parts, pipe_line
from amt_stream.service.screen import Screens
from tests.patience import PATIENCE_S
from tests.service.browser import Browser
from tests.service.served import Served, is_row


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    asked = ["--web", "0", "--source", "demo", "--model", "moore2016"]
    with Served(*asked, "--event-folder", str(folder)) as one:
        one.url = one.address
        one.until(is_row)
        yield one


def pixels(browser):
    return np.asarray(Image.open(io.BytesIO(browser.picture())))


NUMBERS = "[...document.querySelectorAll('.number')]"
VALUES = "[...document.querySelectorAll('.number .value')].map((one) => one.textContent)"
BROKEN = """[...document.querySelectorAll('.what .whole')]
  .filter((one) => one.getClientRects().length > 1).map((one) => one.textContent)"""
CAPTIONS = "[...document.querySelectorAll('.number .what')].map((one) => one.textContent)"
LIGHT = "document.querySelector('.light')"
THERE = f"{VALUES}.some((one) => one !== '---')"


def text(name):
    return f"document.getElementById('{name}').textContent"


def press(name):
    return f"document.getElementById('{name}').click()"


def test_numbers_move_and_are_those_of_the_rows(served):
    with Browser() as browser:
        browser.open(served.url)
        first = browser.until(f"{THERE} && {VALUES}")
        captions = browser.evaluate(CAPTIONS)
        (header,) = (message["header"] for message in served.past if "header" in message)
        names = [caption_of(one["name"]).spoken for one in header["columns"]]
        assert captions == names
        assert captions[1] == "Loudness, long-term (LTL)"
        assert browser.until(f"{text('state')} === 'Running'")
        assert browser.until(text("calibrated")) == "calibrated"
        browser.until(f"JSON.stringify({VALUES}) !== {json.dumps(json.dumps(first))}")
        # Held, so that what is shown and what was sent last are of the same row.
        assert served.ask("stop")["done"]
        browser.until(f"{text('state')} === 'Stopped'")
        last = [message for message in served.past if is_row(message)][-1]
        names = ("stl_sone", "ltl_sone", "stl_phon", "ltl_phon")
        texts = [reading_text(name, last[name]) for name in names]
        becomes(texts, lambda: browser.evaluate(VALUES)[:4])
        assert served.ask("start")["done"]
        browser.until("!document.getElementById('specific').hidden")
        browser.until(f"{text('state')} === 'Running' && {THERE}")
        long_term = np.array([0x3B, 0x0F, 0x7A])
        becomes(True, lambda: (pixels(browser)[..., :3] == long_term).all(axis=-1).any())


RECORD = """(() => {
  const pen = CanvasRenderingContext2D.prototype, { fillText, clearRect } = pen;
  window.drawn = new Map();
  pen.clearRect = function (...area) { drawn.set(this.canvas, []); clearRect.apply(this, area); };
  pen.fillText = function (text, x, y) {
    const on = this.canvas.getBoundingClientRect(), ink = this.measureText(text);
    drawn.get(this.canvas)?.push({ text, rooms: [[on.left, on.top, on.right, on.bottom]], box: [
      on.left + x - ink.actualBoundingBoxLeft, on.top + y - ink.actualBoundingBoxAscent,
      on.left + x + ink.actualBoundingBoxRight, on.top + y + ink.actualBoundingBoxDescent] });
    fillText.call(this, text, x, y);
  };
})()"""
WRITTEN = """(() => {
  const seen = [...drawn.keys()].filter((canvas) => canvas.checkVisibility());
  const found = seen.flatMap((canvas) => drawn.get(canvas));
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const sides = ({ left, top, right, bottom }) => [left, top, right, bottom];
  while (walk.nextNode()) {
    const node = walk.currentNode, of = node.parentElement, range = document.createRange();
    if (!node.data.trim() || !of.checkVisibility({ visibilityProperty: true })) continue;
    if (of.closest('select')) continue;
    let block = of;
    while (getComputedStyle(block).display === 'inline') block = block.parentElement;
    const holders = [block.closest('button') || block.closest('section, details, header') || block];
    if (getComputedStyle(of).overflowX !== 'visible') holders.push(of);
    const rooms = holders.map((one) => sides(one.getBoundingClientRect()));
    range.selectNodeContents(node);
    for (const one of range.getClientRects()) {
      const [left, top, right, bottom] = sides(one);
      const spare = 0.2 * one.height;  // above the letters and below them
      found.push({ text: node.data, rooms, box: [left, top + spare, right, bottom - spare] });
    }
  }
  return found;
})()"""
"""All texts that are seen, of the document and of its canvases, and the boxes that hold them."""


LONGEST = """
document.querySelector('#hero .value').textContent = '100.0';
document.getElementById('state').textContent = 'Bad samples';
document.getElementById('also').textContent = ' · samples lost +2';
"""
"""The longest that the main reading and the state get, until the page shows the next row."""


BOTTOM = "document.getElementById('%s').getBoundingClientRect().bottom"
FILLED = """(() => {
  const [hero, last] = ['#hero', '#hero .second'].map((one) => document.querySelector(one));
  const { top, bottom } = hero.getBoundingClientRect();
  return (last.getBoundingClientRect().bottom - top) / (bottom - top);
})()"""
"""How far down the numbers reach in their place."""
WIDE = """(() => {
  const range = document.createRange(), hero = document.getElementById('hero');
  range.selectNodeContents(hero.querySelector('.value'));
  return range.getBoundingClientRect().width / hero.getBoundingClientRect().width;
})()"""
"""How much of the width of their place the digits take."""


def overlap(one, other):
    return all(one[k] < other[k + 2] - 1 and other[k] < one[k + 2] - 1 for k in (0, 1))


def misplaced(texts, width):
    """Texts that leave their place, and pairs that lie on each other, by more than a pixel."""
    outside = [
        one
        for one in texts
        for left, top, right, bottom in ((0, 0, width, 1e5), *one["rooms"])
        if not (left - 1 <= one["box"][0] and one["box"][2] <= right + 1)
        or not (top - 1 <= one["box"][1] and one["box"][3] <= bottom + 1)
    ]
    pairs = combinations(texts, 2)
    return outside, [pair for pair in pairs if overlap(*(one["box"] for one in pair))]


def becomes(expected, look):
    """Wait until `look()` gives what is expected: a page is drawn a moment later."""
    give_up = time.monotonic() + PATIENCE_S
    while (seen := look()) != expected:
        assert time.monotonic() < give_up, seen
        time.sleep(0.1)


def nothing_is_misplaced(browser, longest, width):
    becomes(([], []), lambda: misplaced(browser.evaluate(longest + WRITTEN), width))


FORECAST = r"Only part of its time was measured\. "
FORECAST += r"Forecast: (\d+ (s|min) left at this level; )?up to \d\d\.\d dB allowed from now on"
CLOSE = """(() => {
  const rules = ['line-height: 0.2', 'margin: 0', 'padding: 0'].map((one) => `${one} !important;`);
  const style = document.createElement('style');
  style.textContent = `* { ${rules.join(' ')} }`;
  document.head.append(style);
})()"""


def test_no_text_of_the_page_is_cut_or_lies_on_another():
    asked = ["--web", "0", "--source", "demo", "--model", "moore2016,spl"]
    with Served(*asked, "--limit", "laeq_15min_db>45") as one, Browser() as browser:
        url = one.address
        one.until(is_row)
        browser.open(url)
        browser.until(f"{LIGHT}?.textContent === 'Above the limit so far'")
        more = browser.until("document.querySelector('.limit .more').textContent")
        assert re.fullmatch(FORECAST, more.replace("\xa0", " "))
        assert browser.evaluate(text("legend")) == "LAeq,15min, dBLAF, dB", "not that of the limit"
        if folder := os.environ.get("AMT_PICTURES"):
            browser.until(f"{text('elapsed')} >= '00:00:25'")
            (Path(folder) / "page.png").write_bytes(browser.picture())
        browser.evaluate(RECORD)

        def look():
            for width, height in ((390, 844), (1280, 800), (3840, 2160)):
                browser.resize(width, height)
                browser.until(f"innerWidth === {width} && drawn.size > 0 && {WRITTEN}.length > 15")
                time.sleep(0.6)  # until all is drawn at this size
                nothing_is_misplaced(browser, LONGEST, width)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                assert browser.evaluate(BROKEN) == [], "a caption breaks at a hyphen or a unit"
                if width > 390:
                    limits, history = (
                        browser.evaluate(BOTTOM % of) for of in ("limits", "history")
                    )
                    assert limits == pytest.approx(history, abs=1), "a column has an empty end"
                    assert browser.evaluate(FILLED) > 0.7

        look()
        browser.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        one.process.kill()
        browser.until("!document.getElementById('banner').hidden")
        look()
        browser.evaluate(CLOSE)
        assert misplaced(browser.evaluate(WRITTEN), 3840)[1], "else nothing was looked at"


@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080), (3840, 2160)])
def test_without_limits_the_numbers_fill_their_place_too(served, size):
    with Browser(*size) as browser:
        browser.open(served.url)
        browser.until(THERE)
        browser.evaluate(RECORD)
        browser.until(f"drawn.size > 0 && {WRITTEN}.length > 15")
        time.sleep(0.6)
        digits = "document.querySelector('#hero .value').textContent = '100.0';"
        nothing_is_misplaced(browser, digits, size[0])
        assert browser.evaluate(FILLED) > 0.8
        assert browser.evaluate(digits + WIDE) > 0.75


def test_what_is_said_of_uncalibrated_readings_has_room(tmp_path):
    noise = 0.1 * np.random.default_rng(1).standard_normal((60 * 48000, 2))
    soundfile.write(tmp_path / "noise.wav", noise, 48000)
    asked = ["--web", "0", "--source", str(tmp_path / "noise.wav"), "--model", "moore2016,spl"]
    with Served(*asked, "--limit", "laeq_15min_db>45") as one, Browser(dark=True) as browser:
        browser.open(one.address)
        browser.until(f"{LIGHT}?.textContent === 'Not judged: uncalibrated'")
        browser.until("document.querySelector('#hero .level').textContent === 'uncalibrated'")
        browser.evaluate(RECORD)
        for width, height in ((390, 844), (1280, 800), (3840, 2160)):
            browser.resize(width, height)
            browser.until(f"innerWidth === {width} && drawn.size > 0 && {WRITTEN}.length > 15")
            time.sleep(0.6)
            digits = "document.querySelector('#hero .value').textContent = '100.0';"
            nothing_is_misplaced(browser, digits, width)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_one_number_its_limit_and_its_history():
    place = "(id) => { const box = document.getElementById(id).getBoundingClientRect(); "
    places = f"['hero', 'limits', 'history'].map({place} return [box.top, box.bottom]; }})"
    asked = ["--web", "0", "--source", "demo", "--model", "spl", "--limit", "laf_db>45"]
    asked += ["--station", "hall"]
    with Served(*asked) as one, Browser(390, 844) as browser:
        url = one.address
        one.until(is_row)
        browser.open(url)
        browser.until(f"{LIGHT}?.textContent === 'Over the limit'")
        hero, limits, history = browser.evaluate(places)
        reading = "document.querySelector('.limit .words').textContent"
        assert re.fullmatch(r"LAF [\d.]+\sdB, limit 45\sdB", browser.evaluate(reading))
        assert browser.evaluate("document.title").endswith("hall: demo sound: amt_stream")
        assert hero[0] < 80
        assert hero[1] < limits[0]
        assert limits[1] < history[0] < 500
        size = "getComputedStyle(document.querySelector('#hero .value')).fontSize"
        assert float(browser.evaluate(size).removesuffix("px")) >= 72
        assert browser.evaluate("document.getElementById('banner').hidden")
        with Browser(400, 200) as overlay:  # has no list of limits, so the number tells of its own
            overlay.open(f"{url}?view=laf&transparent=1")
            told = "document.querySelector('.number .what')"
            overlay.until(f"{told}?.dataset.words === 'Over the limit'")
            shown = f"[{told}, document.querySelector('#limits')].map((o) => o.checkVisibility())"
            assert overlay.evaluate(shown) == [True, False]
        one.process.kill()
        browser.until("!document.getElementById('banner').hidden")
        assert browser.evaluate(text("banner")).startswith("No connection to the meter")
        browser.until("document.querySelector('#hero .value').textContent === '---'")
        browser.until(f"{text('state')} === 'No connection'")
        browser.until(f"{LIGHT}.textContent === 'Not known: no connection'")
        assert browser.evaluate(reading) == "LAF --- dB, limit 45\xa0dB"
        assert browser.evaluate("document.querySelector('#hero .last').textContent").startswith(
            "last "
        )


def test_a_page_that_opens_late_knows_the_history(served):
    while (row := served.until(is_row))["time_s"] < 3:
        pass
    with connect(served.url.replace("http", "ws") + "ws") as client:
        client.send(json.dumps({"history": ["stl_phon", "nosuch"], "microphone": ""}))
        while "history" not in (told := json.loads(client.recv(timeout=10))):
            pass
    seconds, tenths = told["history"]["parts"]
    assert (seconds["step_s"], tenths["step_s"]) == (1.0, 0.1)
    assert list(seconds["columns"]) == ["stl_phon"]
    began = max(k for k, one in enumerate(served.past) if "header" in one)
    rows = [one for one in served.past[began:] if is_row(one)]
    past = {one["time_s"]: one["stl_phon"] for one in rows if one["time_s"] <= row["time_s"]}
    for form in (seconds, tenths):
        column = form["columns"]["stl_phon"]
        for k, begin in enumerate(form["time_s"]):
            end = begin + form["step_s"] - 1e-6
            inside = [value for at, value in past.items() if begin - 1e-6 <= at < end]
            if end < row["time_s"] and inside:
                assert column["least"][k] == pytest.approx(min(inside), rel=1e-4)
                assert column["greatest"][k] == pytest.approx(max(inside), rel=1e-4)


@pytest.mark.quick
def test_frozen_readings_stand_still_while_the_measurement_goes_on(served):
    with Browser() as browser:
        browser.open(served.url)
        browser.until(f"{THERE} && {text('state')} === 'Running'")
        seen = f"[{text('elapsed')}, ...{VALUES}]"
        browser.evaluate(press("freeze"))
        held = browser.until(f"{text('state')} === 'Frozen' && {seen}")
        later = len([one for one in served.past if is_row(one)]) + 15
        served.until(lambda _: len([one for one in served.past if is_row(one)]) >= later)
        assert browser.evaluate(seen) == held
        pressed = "document.getElementById('freeze').getAttribute('aria-pressed')"
        assert browser.evaluate(pressed) == "true"
        browser.evaluate(press("freeze"))
        browser.until(f"{text('state')} === 'Running' && {text('elapsed')} > '{held[0]}'")
        assert browser.evaluate(pressed) == "false"


def test_buttons_command_the_measurement(served):
    with Browser() as browser:
        browser.open(served.url)
        browser.until(f"{text('state')} === 'Running'")
        browser.evaluate(press("pause"))
        browser.until(f"{text('state')} === 'Paused' && {text('pause')} === 'Resume'")
        served.until(lambda message: message.get("event", {}).get("kind") == "paused")
        browser.evaluate(press("pause"))
        browser.until(f"{text('state')} === 'Running'")
        browser.until("document.querySelectorAll('#events li').length >= 2")


def test_an_impulse_is_left_out_by_a_click(tmp_path):
    x = 0.001 * np.random.default_rng(1).standard_normal(60 * 8000)
    x[12000:12160] *= 100
    soundfile.write(tmp_path / "hammer.wav", x, 8000)
    asked = ["--web", "0", "--model", "impulses", "--source", str(tmp_path / "hammer.wav")]
    with Served(*asked, "--full-scale-db", "100") as one, Browser() as browser:
        browser.open(one.address)
        browser.until("document.querySelectorAll('#impulses li').length === 1")
        row = one.until(lambda message: message.get("ki_db"))
        browser.evaluate("window.prompt = () => 'a dog'")
        box = "document.querySelector('#impulses input')"
        browser.evaluate(f"{box}.click()")
        told = one.until(lambda message: message.get("event", {}).get("kind") == "impulse_left_out")
        assert told["event"]["text"] == "a dog"
        assert told["event"]["time_s"] == pytest.approx(1.5, abs=0.021)
        one.until(lambda message: message.get("ki_db") == 0)
        browser.until(f"!{box}.checked && {text('impulses')}.includes('a dog')")
        browser.evaluate(f"{box}.click()")
        one.until(lambda message: message.get("ki_db") == row["ki_db"])
        browser.until(f"{box}.checked && !{text('impulses')}.includes('a dog')")


def test_that_sound_is_kept_is_said_and_a_button_writes_it(served):
    with Browser() as browser:
        browser.open(served.url)
        browser.until(f"{text('kept')} === 'The last 60 s of sound are in memory.'")
        browser.until("!document.getElementById('replay').hidden")
        browser.evaluate(press("replay"))
        told = served.until(lambda m: m.get("event", {}).get("kind") == "sound_kept")["event"]
        assert told["text"].endswith("-replay.flac")


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_as_the_system_has_it(served, dark):
    with Browser(dark=dark) as browser:
        browser.open(served.url)
        browser.until(f"{text('state')} === 'Running'")
        assert (pixels(browser)[-1, 0, :3].mean() < 64) == dark
        browser.evaluate(press("theme"))
        assert (pixels(browser)[-1, 0, :3].mean() < 64) != dark


@pytest.mark.parametrize("size", [(360, 740), (1024, 600), (3840, 2160)])
def test_nothing_is_wider_than_its_place(served, size):
    cut = f"{NUMBERS}.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    with Browser(*size) as browser:
        for path in ("", "?view=ltl", "?view=stl_sone,ltl_phon"):
            browser.open(served.url + path)
            browser.until(THERE)
            browser.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
            assert browser.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert browser.evaluate(cut) == 0


def test_one_reading_over_another_picture(served):
    with Browser() as browser:
        none = {"r": 0, "g": 0, "b": 0, "a": 0}
        browser.ask("Emulation.setDefaultBackgroundColorOverride", color=none)
        browser.open(served.url + "?view=ltl&transparent=1")
        browser.until(f"{VALUES}.length === 2 && {THERE}")
        picture = pixels(browser)
        assert picture.shape[-1] == 4
        assert picture[5, 5, 3] == 0
        assert (picture[..., 3] == 255).any()
        loudness = ["Loudness, long-term (LTL)", "Loudness level, long-term (LTL)"]
        assert browser.evaluate(CAPTIONS) == loudness
        tall = f"{NUMBERS}[0].querySelector('.value').getBoundingClientRect().height"
        assert browser.evaluate(tall) > 100


@pytest.mark.parametrize(
    ("asked", "said", "shown"),
    [
        ("?view=nosuch", 'There is no reading "nosuch": there are stl_sone, ', 0),
        ("?view=ltl,nosuch&transparent=1", 'There is no reading "nosuch"', 2),
        ("?microphone=attic", 'There is no microphone "attic": there is one alone.', 12),
    ],
)
def test_what_the_address_asks_for_and_is_not_there_is_said(served, asked, said, shown):
    with Browser() as browser:
        browser.open(served.url + asked)
        browser.until(f"!document.getElementById('missing').hidden && {text('missing')}")
        assert browser.evaluate(text("missing")).startswith(said)
        assert browser.evaluate("document.getElementById('missing').checkVisibility()")
        assert browser.evaluate(f"{NUMBERS}.length") <= shown
        assert bool(browser.evaluate(f"{NUMBERS}.length")) == bool(shown)


def test_a_token_for_viewers_in_the_fragment_is_all_that_a_browser_source_needs(tmp_path):
    for name in ("token", "viewers"):
        (tmp_path / name).write_text(f"0123456789abcdef {name}")
        (tmp_path / name).chmod(0o600)
    asked = ["--web", "0", "--source", "demo", "--model", "spl"]
    asked += ["--token-file", str(tmp_path / "token")]
    with Served(*asked, "--view-token-file", str(tmp_path / "viewers")) as one:
        url = one.address
        one.until(is_row)
        with Browser() as browser:
            for _ in range(2):  # the source is made anew, with its own address
                browser.open(f"{url}?view=laf_db#token=0123456789abcdef%20viewers")
                browser.until(THERE)
                browser.until("location.hash === ''")
            browser.evaluate(press("stop"))
            refusal = "stop needs the token for commands; this one is for viewing"
            browser.until(f"{text('note')}.startsWith('{refusal}')")
        assert one.until(is_row)


COLUMN = {"name": "laf_db", "unit": "dB", "quantity": "level", "statistic": "instantaneous"}
LIMIT = {"name": "loud", "column": "laf_db", "above": 80}
HEADER = {"columns": [COLUMN], "source": {"name": "UMIK-1"}, "limits": [LIMIT], "step_ms": 1000}
ROW = {"laf_db": 60.0, "settling": False, "settling_columns": "", "clipped_columns": ""}
ROW |= {"calibrated": True, "fault": ""}
HEALTH = {"device_state": "running", "overloaded": False, "note": "", "load": 0.1}
COLORS = {"outline": "#767d89", "red": "#c81e2b"}
CANVAS = """(() => {
  const canvas = document.querySelector('#history canvas').getBoundingClientRect();
  return [canvas.left, canvas.top, canvas.width, canvas.height];
})()"""
CHIPS = [
    ("measuring", {}, {}, "Running"),
    ("measuring", {"device_state": "lost"}, {}, "Lost"),
    ("measuring", {"device_state": "stalled"}, {}, "Stalled"),
    ("measuring", {"device_state": "silent"}, {"limit_loud": "red"}, "Silent"),
    ("measuring", {"overloaded": True}, {"settling": True}, "Too slow · settling"),
    ("measuring", {}, {"settling": True}, "Settling"),
    ("measuring", {}, {"calibrated": False}, "Uncalibrated"),
    ("measuring", {}, {"limit_loud": "red"}, "Over limit"),
    ("paused", {}, {"limit_loud": "red"}, "Over limit · paused"),
    ("paused", {}, {}, "Paused"),
    ("waiting", {}, {}, "Waiting"),
    ("starting", {}, {}, "Starting"),
    ("stopped", {}, {"limit_loud": "red"}, "Stopped"),
    ("ended", {}, {}, "Ended"),
    ("failed", {}, {}, "Failed"),
    ("measuring", {}, {"fault": "clip", "limit_loud": "red"}, "Clipped · over limit"),
    (
        "measuring",
        {},
        {"fault": "non_finite gap", "settling": True},
        "Bad samples · samples lost +2",
    ),
]


@contextlib.contextmanager
def page_server(token=None):
    """The process of the page, and a function that gives it messages."""
    command = [sys.executable, "-m", "amt_stream.service.page.server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        settings = {"host": "127.0.0.1", "port": 0, "token": token, "viewers": None, "origins": []}
        process.stdin.write(json.dumps(settings).encode() + b"\n")

        screens, over, at_once = Screens(), threading.Event(), threading.Lock()

        def send(kind, content):
            with at_once:
                message = Message(kind, content)
                screens.take(message)
                for one in (message, *screens.messages()):
                    process.stdin.write(pipe_line(one.kind, "", one.text))
                process.stdin.flush()

        def go_on():
            while not over.wait(0.2):
                send("summary", {})

        send("header", HEADER)
        telling = threading.Thread(target=go_on)
        telling.start()
        yield f"http://127.0.0.1:{parts(process.stdout.readline())[2]}/", send
        over.set()
        telling.join()
        process.stdin.close()


def test_each_state_has_its_word_and_its_shape_on_the_page():
    shown = "document.querySelector('#chip [role=status]').textContent"
    shape = "document.querySelector('#chip path').getAttribute('d')"
    high = "document.getElementById('chip').getBoundingClientRect().height"
    with page_server() as (url, send), Browser(390, 844) as browser:
        browser.open(url)
        heights = set()
        for k, (state, health, row, word) in enumerate(CHIPS):
            health = {**HEALTH, **health}
            send("state", {"state": state, "why": [], "error": "", "health": health})
            send("row", {"time_s": 0.1 * k, "limit_loud": "green", **ROW, **row})
            browser.until(f"{shown} === {json.dumps(word)}")
            name = word.lower().partition(" ·")[0]
            assert json.dumps({"path": browser.evaluate(shape)})[1:-1] in signs_script(), word
            title = "UMIK-1: amt_stream" if name == "running" else f"{word.partition(' ·')[0]} - "
            assert browser.evaluate("document.title").startswith(title)
            level = browser.evaluate("document.querySelector('#hero .level').textContent")
            assert level == ("uncalibrated" if name == "uncalibrated" else "")
            heights.add(browser.evaluate(high))
    assert len(heights) == 1, "a chip of two lines"


def test_a_lost_microphone_is_said_once_and_the_history_goes_on_into_hatching():
    with page_server() as (url, send), Browser() as browser:
        browser.open(url)

        def tell(**health):
            state = {"state": "measuring", "why": [], "error": "", "health": {**HEALTH, **health}}
            send("state", state)

        def colored(name):
            """How many pixels of the history have this color."""
            left, top, wide, high = map(round, browser.evaluate(CANVAS))
            color = [int(COLORS[name][k : k + 2], 16) for k in (1, 3, 5)]
            canvas = pixels(browser)[top : top + high, left : left + wide, :3]
            return int((canvas == color).all(axis=-1).sum())

        tell()
        for k in range(20):
            send("row", {"time_s": 0.1 * k, "limit_loud": "green", **ROW})
        browser.until(f"{text('state')} === 'Running' && {VALUES}.includes('60.0')")
        browser.until(f"{LIGHT}.textContent === 'Within the limit'")
        browser.until(f"{LIGHT}.textContent === 'Not known yet'")  # the next row is late
        time.sleep(0.5)
        assert colored("outline") < 10
        assert colored("red") > 100, "the limit is a line"
        tell(device_state="lost", note="UMIK-1 was lost: it was unplugged")
        browser.until(f"{text('banner')}.startsWith('Microphone lost 00:03, waiting for UMIK-1')")
        assert "lost" not in browser.evaluate(text("note"))
        assert colored("outline") > 40
        note = "UMIK-1 gives exact zeros: it is muted in the sound server"
        tell(device_state="silent", note=note)
        browser.until(f"{text('banner')}.startsWith('Microphone silent 00:0')")
        assert browser.evaluate(text("banner")).endswith(f", {note}")
        assert browser.evaluate(text("state")) == "Silent"
        browser.until(f"{LIGHT}.textContent === 'Not known: silent'")
        assert browser.evaluate(f"{VALUES}.includes('---')")
        embed = "document.querySelector('amt-meter').shadowRoot.querySelector('.{}').textContent"
        browser.evaluate("document.body.append(document.createElement('amt-meter')); 0")
        browser.evaluate("document.querySelector('amt-meter').setAttribute('column', 'laf_db'); 0")
        browser.until(f"{embed.format('doubt')}.startsWith('silent')")
        assert browser.evaluate(embed.format("value")) == "---"


@pytest.mark.parametrize("clipped", ["", "laf_db", "all"])
@pytest.mark.parametrize("name", ["laf_db", "lceq_minus_laeq_db", "ltl_phon", "integrated_lufs"])
def test_a_reading_of_clipped_sound_has_the_sign_of_all_displays(clipped, name):
    row = {"laf_db": 60.25, "lceq_minus_laeq_db": -0.04, "ltl_phon": 130, "integrated_lufs": -23.0}
    row = ROW | row | {"clipped_columns": clipped, "time_s": 0.1}
    screens = Screens()
    screens.take(Message("header", HEADER | {"columns": [column_named(name).to_dict()]}))
    screens.take(Message("row", row))
    (screen,) = screens.messages()
    assert screen.content["readings"][name]["text"] == row_text(name, row)


def test_a_page_without_its_token_says_so_until_it_has_one():
    with page_server(token="0123456789abcdef") as (url, send), Browser() as browser:
        send("state", {"state": "measuring", "why": [], "health": HEALTH})
        browser.open(url)
        enter = "document.querySelector('[name=token]').value = '{}'; "
        enter += "document.querySelector('#token button').click()"
        browser.until(f"{text('state')} === 'Token needed'")
        browser.evaluate(enter.format("not this one"))
        browser.until(f"{text('asked')}.startsWith('The token was refused')")
        assert browser.evaluate(text("state")) == "Token needed"
        browser.evaluate(enter.format("0123456789abcdef"))
        browser.until(f"{text('state')} === 'Running'")
        assert browser.evaluate("document.getElementById('token').hidden")


PAGE = """<!doctype html><script type="module" src="{url}amt-meter.js"></script>
<amt-meter src="{ws}" column="stl_phon"></amt-meter>
<amt-meter src="{ws}" column="banana"></amt-meter>"""


@contextlib.contextmanager
def other_page(served):
    """A page of another origin with the element in it."""
    body = PAGE.format(url=served.url, ws=served.url.replace("http", "ws") + "ws").encode()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_element_stands_in_a_page_that_was_let_in(served):
    with other_page(served) as elsewhere, Browser() as browser:
        browser.open(elsewhere)
        # It was not let in: nothing of this server reaches it.
        browser.until("document.readyState === 'complete'")
        assert browser.evaluate("document.querySelector('amt-meter').shadowRoot") is None
    with Served("--web", "0", "--source", "demo") as own:
        own.url = own.address
    port = own.url.rstrip("/").rsplit(":", 1)[1]
    own.url = f"http://127.0.0.1:{port}/"
    part = "document.querySelectorAll('amt-meter')[{}].shadowRoot.querySelector('.{}')"
    with other_page(own) as elsewhere:
        again = Served("--web", port, "--source", "demo", "--allow-origin", elsewhere)
        with again, Browser() as browser:
            again.until(is_row)
            browser.open(elsewhere)
            browser.until("document.querySelector('amt-meter').shadowRoot !== null")
            browser.until(f"Number({part.format(0, 'value')}.textContent) >= 0")
            assert browser.evaluate(f"{part.format(0, 'unit')}.textContent") == "phon"
            browser.until(f"{part.format(1, 'doubt')}.textContent === 'there is no such reading'")
