"""The page of a model in a real browser: what it says of a microphone that gives no sound."""

import pytest

from tests.service.browser import Browser

WATCHED = """
(() => {
  window.contexts = [];
  window.tracks = [];
  const Context = AudioContext, devices = navigator.mediaDevices;
  window.AudioContext = class extends Context {
    constructor(...given) { super(...given); contexts.push(this); }
  };
  const ask = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (given) => {
    const stream = await ask(given);
    tracks.push(...stream.getTracks());
    return stream;
  };
  window.synthetic = (set) => {  // a microphone of nodes
    devices.getUserMedia = async () => {
      const to = contexts.at(-1).createMediaStreamDestination();
      set(contexts.at(-1), to);
      tracks.push(...to.stream.getTracks());
      return to.stream;
    };
  };
})()
"""
STATE = "document.getElementById('state').textContent"
NUMBER = "document.querySelector('#numbers b').textContent"
PRESS = "document.getElementById('start').click()"
TONE = """
synthetic((context, to) => {
  window.loud = new GainNode(context, { gain: 0.1 });
  const tone = new OscillatorNode(context, { frequency: 1000 });
  tone.connect(loud).connect(to);
  tone.start();
})
"""


@pytest.fixture
def browser():
    with Browser(width=400, height=700) as one:
        yield one


@pytest.fixture
def page(browser, web):
    browser.open((web / "zwicker.html").as_uri())
    browser.evaluate(WATCHED)
    return browser


def hear(page, source=TONE, gain="20"):
    page.evaluate(f"document.getElementById('gain').value = '{gain}'")
    page.evaluate(source)
    page.evaluate(PRESS)


def closed(page):
    """Whether nothing of a measurement is left."""
    return page.evaluate(
        "contexts.every((one) => one.state === 'closed') && "
        "tracks.every((one) => one.readyState === 'ended')"
    )


def test_a_suspended_sound_is_stalled_and_no_number_stays(page):
    hear(page)
    page.until(f"{STATE} === '● running'")
    assert float(page.evaluate(NUMBER)) > 1
    page.evaluate("contexts[0].suspend(); 0")
    page.until(f"{STATE} === '╍ stalled' && {NUMBER} === '---'")
    page.evaluate("contexts[0].resume(); 0")
    page.until(f"{STATE} === '◐ settling' && Number({NUMBER}) > 1")
    page.until(f"{STATE} === '● running'")


def test_exact_zeros_are_a_microphone_that_is_off(page):
    hear(page)
    page.until(f"{STATE} === '● running'")
    page.evaluate("loud.gain.value = 0")
    page.until(f"{STATE} === '⊖ silent' && {NUMBER} === '---'")
    page.evaluate("loud.gain.value = 0.1")
    page.until(f"{STATE} === '● running'")


def test_sound_at_the_end_of_range_is_clipped(page):
    hear(page)
    page.until(f"{STATE} === '● running'")
    page.evaluate("loud.gain.value = 5")
    page.until(f"{STATE} === '┳ clipped'")
    page.evaluate("loud.gain.value = 0.1")
    page.until(f"{STATE} === '● running'")


def test_sound_that_the_browser_changes_is_uncalibrated(page):
    hear(
        page,
        f"""{TONE}
      MediaStreamTrack.prototype.getSettings = () => ({{ autoGainControl: true }});""",
    )
    page.until(f"{STATE} === '▨ uncalibrated: the browser still applies automatic gain'")


def test_a_gain_that_is_none_is_named(page):
    hear(page, gain="2o")
    page.until(f"{STATE}.endsWith('▨ uncalibrated: the gain is 2o: give a number above 0')")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NotAllowedError", "the browser refused the microphone: allow it for this page"),
        ("NotFoundError", "there is no microphone: connect one"),
        ("NotReadableError", "another program holds the microphone: close it"),
    ],
)
def test_without_a_microphone_it_says_why(page, name, said):
    refused = f"async () => {{ throw new DOMException('', '{name}'); }}"
    hear(page, f"navigator.mediaDevices.getUserMedia = {refused}; 0")
    page.until(f"{STATE} === '! failed: {said}, then start again'")
    assert closed(page)
    page.evaluate(TONE)
    page.evaluate(PRESS)
    page.until(f"{STATE} === '▨ uncalibrated' || {STATE} === '● running'")


def test_a_damaged_page_fails_and_leaves_the_microphone(browser, web, tmp_path):
    whole = (web / "zwicker.html").read_text(encoding="utf-8")
    damaged = tmp_path / "damaged.html"
    damaged.write_text(whole.replace('WASM = "AGFzbQ', 'WASM = "AGFzbR'), encoding="utf-8")
    browser.open(damaged.as_uri())
    browser.evaluate(WATCHED)
    browser.evaluate(PRESS)
    browser.until(f"{STATE}.startsWith('! failed: WebAssembly')")
    assert browser.evaluate("tracks.length") == 1
    browser.until("contexts[0].state === 'closed'")
    assert closed(browser)


def test_two_presses_begin_one_measurement(page):
    page.evaluate(f"{PRESS}; {PRESS}")
    page.until(f"Number({NUMBER}) > 0")
    assert page.evaluate("[contexts.length, tracks.length]") == [1, 1]
    page.evaluate(PRESS)
    page.until("contexts[0].state === 'closed'")
    assert closed(page)
    assert page.evaluate(STATE) == "□ stopped"
