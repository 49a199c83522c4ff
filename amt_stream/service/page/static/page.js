// The page of a running meter: readings, their history, specific loudness, events.
//   ?view=ltl,laeq_db     only these readings, by name, with or without the unit; as large as fits
//   ?transparent=1        without a background, to overlay it on a video
//   ?microphone=desk      one of several microphones
//   ?theme=light|dark     instead of the system's
//   #token=...            instead of typing it, for browser sources of OBS; it appears in no log

import { Connection, caption, isOlder, short } from "./amt-meter.js";
import { SIGNS, UNREACHED } from "./states.js";

const asked = new URLSearchParams(location.search);
const view = (asked.get("view") || "").split(",").filter(Boolean);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("amt-token", given);
  history.replaceState(null, "", location.pathname + location.search); // remove it from the address bar and the history
}
addEventListener("hashchange", () => location.reload());
const connection = Connection.to(null);
const MOST = 12;
const KEPT_S = 3600;
const EVENTS = 50;
const MOST_LINES = 4;
const NOTHING = { text: "---", last: "", doubts: [], grey: true }; // before the first row
const ANSWER_MS = 5000; // why a command was refused is shown for so long
const at = (id) => document.getElementById(id);
const points = new Map(); // by microphone: times and rows, the newest KEPT_S of them
const past = new Map(); // by microphone: earlier rows from the server, one per second
let columns = [];
let hero = [];
let drawn = [];
let whose = asked.get("microphone") || "";
let limits = [];
let patterns = [];
let refused = false, tried = false;
let answer = { text: "", came: -Infinity }; // to the last command that was refused
let frozen = null; // while the readings are held: what was shown

document.body.classList.toggle("view", view.length > 0);
document.body.classList.toggle("transparent", asked.get("transparent") === "1");
const root = document.documentElement;
root.dataset.theme = asked.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
for (const id of ["all", "specific"]) at(id).open = view.length > 0 || matchMedia("(min-width: 56rem)").matches;

// A text whose words with a hyphen, and numbers with their units, stay on one line each.
function write(element, text) {
  if (element.textContent === text) return;
  element.replaceChildren(...text.split(/(\S+-\S+|\d+ \S+)/).map((part, k) => {
    if (k % 2 === 0) return part;
    const made = document.createElement("span");
    made.className = "whole";
    made.append(part);
    return made;
  }));
}

function button(column) {
  const made = document.createElement("button");
  made.className = "number";
  made.type = "button";
  made.title = column.name + (column.note ? `: ${column.note}` : "");
  const parts = {};
  for (const name of ["what", "value", "unit", "level"]) {
    parts[name] = document.createElement("span");
    parts[name].className = name;
    made.append(parts[name], name === "what" ? "" : " ");
  }
  write(parts.what, caption(column));
  parts.unit.textContent = column.unit;
  parts.value.textContent = "---";
  made.addEventListener("click", () => toggle(column));
  return { column, made, what: parts.what, value: parts.value, level: parts.level };
}

// The color of a line: loudness has colors of its own; other lines take turns.
function colorOf(name) {
  if (/^[ls]tl_/.test(name)) return name.slice(0, 3);
  const others = drawn.filter((one) => !/^[ls]tl_/.test(one));
  return ["left", "right", "stl", "ltl"][others.indexOf(name) % MOST_LINES];
}

function toggle(column) {
  const there = drawn.includes(column.name);
  const alike = drawn.filter((name) => connection.column(name)?.unit === column.unit);
  drawn = there ? drawn.filter((name) => name !== column.name) : [...alike, column.name].slice(-MOST_LINES);
  showKeys();
  askForPast();
}

function showKeys() {
  for (const { column, made } of columns) {
    const there = drawn.includes(column.name);
    made.setAttribute("aria-pressed", String(there));
    made.style.setProperty("--key", there ? `var(--${colorOf(column.name)})` : "");
  }
  at("legend").replaceChildren(...drawn.map((name) => {
    const column = connection.column(name);
    const made = document.createElement("span");
    const line = document.createElement("i");
    line.style.color = `var(--${colorOf(name)})`;
    made.append(line, [short(column), column.unit].filter(Boolean).join(", "));
    made.title = caption(column);
    return made;
  }));
}

function askForPast() {
  connection.send({ history: drawn, microphone: whose });
}

const isCalled = (column, name) => [name, `${name}_${column.unit.toLowerCase()}`].includes(column.name);

// Readings and microphones in the address that the measurement does not have.
function showMissing(numbers, microphones) {
  const named = (names) => names.slice(0, MOST).join(", ") + (names.length > MOST ? " ..." : "");
  const said = view.filter((name) => !numbers.some((one) => isCalled(one, name)))
    .map((name) => `There is no reading "${name}": there are ${named(numbers.map((one) => one.name))}.`);
  const wanted = asked.get("microphone");
  if (wanted && !microphones.includes(wanted)) said.push(`There is no microphone "${wanted}": there ${microphones.length ? `are ${named(microphones)}` : "is one alone"}.`);
  at("missing").textContent = said.join(" ");
  at("missing").hidden = said.length === 0;
}

function showLimits() {
  at("limits").hidden = limits.length === 0;
  at("limits").replaceChildren(...limits.map((limit) => {
    const made = document.createElement("span");
    made.className = "limit";
    made.title = limit.source || "";
    for (const name of ["light", "words", "more quiet"]) {
      const part = document.createElement("span");
      part.className = name;
      made.append(part);
    }
    limit.parts = [...made.children];
    return made;
  }));
}

// The state and the reading of each limit in the words of the server, which judges no frozen reading after the end.
function drawLimits(shown, fresh) {
  for (const { what } of columns) { delete what.dataset.state; delete what.dataset.words; }
  const away = UNREACHED[unreached()]?.limit, now = screen();
  const ofLimit = (from, limit) => from?.limits.find((one) => one.name === limit.name);
  for (const limit of limits) {
    const [light, reading, more] = limit.parts;
    const one = ofLimit(shown, limit), judged = away || !fresh ? null : ofLimit(now.measures ? shown : now, limit);
    light.textContent = judged ? judged.word : away || "Not known yet";
    const state = light.dataset.state = judged ? judged.state : "unknown";
    // Over another picture the number has the words itself, those of the worst of its limits.
    const own = columns.find((one) => one.column.name === limit.column)?.what.dataset;
    if (own && (state === "red" || (state === "amber" && own.state !== "red"))) Object.assign(own, { state, words: light.textContent });
    reading.textContent = one ? tied(fresh ? one.value : one.without) : "";
    more.textContent = judged ? tied(judged.more) : "";
  }
}

function drawImpulses(shown) {
  const impulses = shown?.impulses || [], list = at("impulses").querySelector("ol");
  at("impulses").hidden = !impulses.length;
  const now = JSON.stringify(impulses);
  if (list.dataset.shown === now) return;
  list.dataset.shown = now;
  list.replaceChildren(...impulses.map(({ time_s, words, counts, why }) => {
    const item = document.createElement("li"), label = document.createElement("label"), box = document.createElement("input");
    Object.assign(box, { type: "checkbox", checked: counts });
    box.addEventListener("change", () => {
      const text = box.checked ? null : prompt("Why is this impulse left out?");
      const microphone = shown.microphone ? { microphone: shown.microphone } : {};
      if (box.checked) connection.send({ command: "take_in", time_s, ...microphone });
      else if (text !== null) connection.send({ command: "leave_out", time_s, text, ...microphone });
      else box.checked = true;
    });
    label.append(box, ` ${words}${why ? `: ${why}` : ""}`);
    item.append(label);
    return item;
  }));
}

connection.addEventListener("header", ({ detail: header }) => {
  freeze(null);
  points.clear();
  past.clear();
  const keys = new Set(["row", "ear", "channel"]);
  limits = header.limits || [];
  const ofLimits = new Set(limits.map((one) => `limit_${one.name}`));
  const numbers = header.columns.filter((one) => !ofLimits.has(one.name) && one.statistic !== "forecast" && (one.unit !== "" || !keys.has(one.name)));
  showLimits();
  const chosen = view.length ? numbers.filter((one) => view.some((name) => isCalled(one, name))) : numbers.filter((one, k) => k < MOST || limits.some((limit) => limit.column === one.name));
  showMissing(numbers, Object.keys(header.source.microphones || {}));
  columns = chosen.map(button);
  hero = heroes(numbers);
  at("hero").hidden = hero.length === 0;
  at("hero").title = hero.map((one) => one.name).join(", ");
  at("numbers").replaceChildren(...columns.map((one) => one.made));
  at("numbers").style.setProperty("--columns", String(Math.min(columns.length, 3)));
  const judged = limits.map((limit) => numbers.find((one) => one.name === limit.column)).find(Boolean);
  const first = judged || numbers.find((one) => one.unit === "phon") || numbers[0];
  const alike = numbers.filter((one) => first && one.unit === first.unit && (one === judged || one.statistic === "instantaneous"));
  alike.sort((one, other) => (other === judged) - (one === judged));
  drawn = alike.slice(0, 2).map((one) => one.name);
  drawn.sort((one, other) => other.startsWith("ltl_") - one.startsWith("ltl_")); // the wider line lies below
  at("source").textContent = sourceName(header);
  at("kept").textContent = header.kept_sound_s ? `The last ${header.kept_sound_s} s of sound are in memory.` : "";
  at("replay").hidden = !header.kept_sound_s;
  const microphones = Object.keys(header.source.microphones || {});
  at("whose").hidden = microphones.length === 0;
  const select = at("whose").querySelector("select");
  select.replaceChildren(...microphones.map((name) => new Option(name, name)));
  if (microphones.length && !microphones.includes(whose)) whose = microphones[0];
  if (!microphones.length) whose = "";
  select.value = whose;
  showKeys();
  if (!view.length) askForPast();
});

// What is read first: long-term loudness where there is one, else the first reading; and the same in another unit.
function heroes(numbers) {
  const found = numbers.find((one) => one.name === "ltl_sone") || numbers[0];
  if (!found) return [];
  const stem = found.name.slice(0, found.name.lastIndexOf("_") + 1);
  const other = numbers.find((one) => one !== found && one.statistic === found.statistic && one.unit === "phon" && one.name === `${stem}phon`);
  return other ? [found, other] : [found];
}

connection.addEventListener("history", ({ detail }) => { past.set(detail.microphone, detail); });

at("whose").addEventListener("change", (event) => { freeze(null); whose = event.target.value; askForPast(); });

connection.addEventListener("row", ({ detail: row }) => {
  const key = row.row || "";
  if (!points.has(key)) points.set(key, { time: [], rows: [] });
  const kept = points.get(key);
  if (kept.time.length && row.time_s <= kept.time[kept.time.length - 1]) { kept.time.length = 0; kept.rows.length = 0; }
  kept.came = performance.now();
  kept.time.push(row.time_s);
  kept.rows.push(row);
  if (kept.time[0] < row.time_s - KEPT_S - 60) {
    const from = kept.time.findIndex((time) => time >= row.time_s - KEPT_S);
    kept.time.splice(0, from);
    kept.rows.splice(0, from);
  }
});

// What the server last said of the microphone that is shown.
const screen = () => connection.screens.get(whose) || connection.screens.get("");

// Why nothing is known of the measurement, which only this page knows; a state of UNREACHED, or "".
function unreached() {
  if (refused) return "token needed";
  if (connection.socket.readyState === WebSocket.CONNECTING && !tried) return "connecting";
  if (connection.socket.readyState !== WebSocket.OPEN) return "no connection";
  return screen() ? "" : "connecting";
}

const tied = (text) => text.replace(/(?<=\d) /g, "\u00a0"); // a unit stays on the line of its number
const sourceName = ({ station, source }) => station ? `${station}: ${source.name}` : source.name;

function showState() {
  const { state, word, also } = (UNREACHED[unreached()] || screen())[frozen ? "frozen_chip" : "chip"];
  const chip = at("chip"), sign = SIGNS[state];
  at("state").textContent = word;
  at("also").textContent = also;
  if (chip.dataset.state !== state) {
    chip.dataset.state = state;
    chip.classList.toggle("filled", sign.filled);
    chip.style.setProperty("--sign", `var(--${sign.color})`);
    chip.querySelector("path").setAttribute("d", sign.path);
  }
  const name = connection.header ? `${sourceName(connection.header)}: amt_stream` : "amt_stream";
  document.title = state === "running" ? name : `${word} - ${name}`;
}

let cutAt = null; // when the connection was lost

// The one thing that keeps this page from showing the sound of now, with the time since it began.
function showBanner() {
  const cut = unreached() === "no connection";
  cutAt = cut ? cutAt ?? performance.now() : null;
  const text = cut ? `No connection to the meter; trying again (${clock((performance.now() - cutAt) / 1000).slice(3)})` : screen()?.banner || "";
  at("banner").hidden = !text;
  if (text) at("banner").textContent = text;
}

function showNote() {
  const refusal = performance.now() - answer.came < ANSWER_MS ? [answer.text] : [];
  at("note").textContent = [...refusal, screen()?.note].filter(Boolean).join(" · ");
}

connection.addEventListener("state", ({ detail: state }) => {
  accept();
  const running = state.state === "measuring" || state.state === "paused";
  const waiting = state.state === "waiting";
  at("pause").textContent = state.state === "paused" ? "Resume" : "Pause";
  at("pause").dataset.command = state.state === "paused" ? "unpause" : "pause";
  at("stop").textContent = running || waiting ? "Stop" : "Start";
  at("stop").dataset.command = running || waiting ? "stop" : "start";
  for (const id of ["pause", "reset_readings", "mark"]) at(id).disabled = !running;
});

connection.addEventListener("event", ({ detail: event }) => {
  const item = document.createElement("li");
  item.textContent = `${clock(event.time_s)} ${event.kind.replaceAll("_", " ")}${event.microphone ? ` (${event.microphone})` : ""}: ${event.text}`;
  const list = at("events").querySelector("ol");
  list.prepend(item);
  while (list.children.length > EVENTS) list.lastChild.remove();
  at("newest").textContent = item.textContent;
  at("events").hidden = false;
});

connection.addEventListener("specific", ({ detail }) => {
  patterns = [...patterns.filter((one) => one.model !== detail.model || one.microphone !== detail.microphone), detail];
});
// The server has let this page in: messages come.
function accept() {
  refused = false;
  at("token").hidden = true;
}

connection.addEventListener("closed", () => { tried = true; showState(); });
connection.addEventListener("token", () => {
  at("asked").textContent = sessionStorage.getItem("amt-token") ? "The token was refused. Token:" : "This meter requires a token:";
  sessionStorage.removeItem("amt-token");
  refused = true;
  at("token").hidden = false;
});
connection.addEventListener("reply", ({ detail }) => {
  if (!detail.error) return;
  answer = { text: detail.error, came: performance.now() };
  showNote();
});
connection.subscribe(["header", "row", "event", "state", "summary", "screen", ...(view.length ? [] : ["specific"])]);

at("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("amt-token", new FormData(event.target).get("token"));
  accept();
  tried = false;
  connection.open();
});
for (const one of document.querySelectorAll("button[data-command]")) {
  one.addEventListener("click", () => connection.send({ command: one.dataset.command }));
}
at("mark").addEventListener("click", () => {
  const text = prompt("Text of the marker");
  if (text) connection.send({ command: "mark", text });
});
at("freeze").addEventListener("click", () => freeze(frozen ? null : screen()));
at("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// Hold these readings, if there are any, or release them; the measurement goes on.
function freeze(shown) {
  frozen = shown && shown.time_s !== null ? shown : null;
  at("freeze").setAttribute("aria-pressed", String(Boolean(frozen)));
}

function showNumbers() {
  const shown = frozen || screen();
  showState();
  showBanner();
  showNote();
  const known = Boolean(shown) && shown.time_s !== null;
  const fresh = Boolean(frozen) || (Boolean(shown) && !isOlder(shown, shown.late_after_s));
  const still = Boolean(frozen || unreached());
  const of = (column) => shown?.readings[column.name] || NOTHING;
  const reading = (column) => fresh ? of(column).text : "---";
  const level = (column) => of(column).doubts.includes("uncalibrated") ? "uncalibrated" : "";
  const grey = (column) => still || !fresh || of(column).grey;
  for (const { column, made, value, level: part } of columns) {
    part.textContent = level(column);
    made.classList.toggle("uncalibrated", Boolean(part.textContent));
    value.textContent = reading(column);
    made.classList.toggle("doubtful", grey(column));
  }
  const parts = [".reading", ".second"].map((name) => at("hero").querySelector(name));
  parts[1].hidden = hero.length < 2;
  hero.forEach((column, k) => {
    parts[k].querySelector(".value").textContent = reading(column);
    parts[k].querySelector(".unit").textContent = column.unit;
    parts[k].querySelector(".level").textContent = level(column);
    parts[k].classList.toggle("uncalibrated", Boolean(level(column)));
  });
  if (hero.length) {
    const last = of(hero[0]).last || (known && !fresh ? of(hero[0]).text : "");
    write(at("hero").querySelector(".what"), caption(hero[0]));
    at("hero").querySelector(".last").textContent = last ? `last ${last} ${hero[0].unit}` : "";
    at("hero").classList.toggle("doubtful", grey(hero[0]));
  }
  drawLimits(shown, fresh);
  drawImpulses(shown);
  const longest = Math.max(3, ...columns.map((one) => one.value.textContent.length));
  at("numbers").style.setProperty("--digits", String(longest));
  at("calibrated").textContent = shown?.calibrated ? "calibrated" : "";
  at("elapsed").textContent = known ? clock(shown.time_s) : "";
}

function ready(canvas) {
  const scale = devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  const em = parseFloat(getComputedStyle(root).fontSize) * 0.75;
  pen.font = `${em}px system-ui, sans-serif`;
  pen.lineJoin = "round";
  return { pen, width, height, em, thick: Math.max(1, Math.sqrt(width / 800)) };
}

const shade = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();

function steps(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(value);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step))) };
}

function frame(pen, area, low, high, marks) {
  pen.strokeStyle = shade("grid");
  pen.fillStyle = shade("second");
  pen.lineWidth = 1;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const { found, digits } = steps(low, high, Math.max(2, area.height / (2.5 * area.em)));
  for (const value of found) {
    const y = Math.round(area.y(value)) + 0.5;
    pen.beginPath(); pen.moveTo(area.left, y); pen.lineTo(area.left + area.width, y); pen.stroke();
    pen.fillText(value.toFixed(digits), area.left - area.em / 2, y);
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  let free = -Infinity; // no text over the one before
  for (const [x, text] of marks) {
    const half = pen.measureText(text).width / 2;
    if (x - half < free || x + half > area.left + area.width + area.em) continue;
    pen.fillText(text, x, area.top + area.height + area.em / 2);
    free = x + half + area.em;
  }
}

function place({ width, height, em }, low, high) {
  const area = { em, left: 3.2 * em, top: em / 2, width: width - 4.2 * em, height: height - 2.5 * em };
  area.y = (value) => area.top + area.height * (1 - (value - low) / (high - low));
  return area;
}

// Of a reading since `begin`: [time, least, greatest, step]; what the server knows, then rows of this page.
function* course(name, begin) {
  const kept = points.get(whose);
  const live = kept && kept.time.length ? kept.time[0] : Infinity;
  const parts = past.get(whose)?.parts || [];
  for (const [index, { step_s, time_s, columns }] of parts.entries()) {
    const found = columns[name];
    const until = Math.min(live, parts[index + 1]?.time_s[0] ?? Infinity);
    for (let k = 0; found && k < time_s.length && time_s[k] + step_s <= until + 1e-6; k += 1) {
      if (time_s[k] >= begin && found.least[k] !== null) yield [time_s[k], found.least[k], found.greatest[k], step_s];
    }
  }
  if (!kept) return;
  let first = kept.time.length;
  while (first > 0 && kept.time[first - 1] >= begin) first -= 1;
  for (let k = first; k < kept.time.length; k += 1) {
    const value = kept.rows[k][name];
    if (typeof value === "number") yield [kept.time[k], value, value, connection.header.step_ms / 1000];
  }
}

let picture = { key: "", now: -Infinity };

function drawHistory() {
  const element = at("history").querySelector("canvas");
  const kept = points.get(whose);
  const span = Number(at("span").value);
  const { width, height } = element.getBoundingClientRect();
  if (!kept || !kept.time.length || !drawn.length || width < 80) return;
  const newest = kept.time[kept.time.length - 1];
  // Without its microphone or its server the history goes on into hatching.
  const silent = !frozen && (screen()?.away || unreached() === "no connection");
  const now = frozen ? frozen.time_s : newest + (silent ? (performance.now() - kept.came) / 1000 : 0);
  const key = [width, height, span, whose, root.dataset.theme, ...drawn, past.has(whose)].join(" ");
  if (key === picture.key && Math.abs(now - picture.now) < span / width / 2) return; // nothing would move
  picture = { key, now };
  const canvas = ready(element);
  const { pen } = canvas;
  const courses = drawn.map((name) => [...course(name, now - span)].filter(([time]) => time <= now));
  let low = Infinity, high = -Infinity;
  for (const [, least, greatest] of courses.flat()) { low = Math.min(low, least); high = Math.max(high, greatest); }
  if (!(high >= low)) return;
  const unit = connection.column(drawn[0])?.unit;
  const thresholds = limits.filter((one) => connection.column(one.column)?.unit === unit).map((one) => ({ ...one, at: one.above ?? one.below }));
  for (const one of thresholds) { low = Math.min(low, one.at); high = Math.max(high, one.at); }
  low = unit === "sone" ? 0 : ["phon", "dB"].includes(unit) ? 20 : Math.floor(low / 10) * 10;
  high = unit === "sone" ? Math.max(high * 1.05, 0.1) : Math.max(Math.ceil((high + 1) / 10) * 10, low + 10);
  const area = place(canvas, low, high);
  const x = (time) => area.left + area.width * (1 - (now - time) / span);
  const every = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].find((s) => span / s <= Math.max(2, area.width / (7 * area.em)));
  const marks = [];
  for (let t = Math.ceil((now - span) / every) * every; t <= now; t += every) if (t >= 0) marks.push([x(t), clock(t)]);
  frame(pen, area, low, high, marks);
  pen.save();
  pen.beginPath(); pen.rect(area.left, area.top, area.width, area.height); pen.clip();
  for (const [begin, end] of gaps(courses[0], now)) hatch(canvas, area, x(begin), x(end));
  drawn.forEach((name, index) => drawCourse(canvas, area, x, courses[index], name));
  for (const one of thresholds) drawThreshold(canvas, area, one);
  pen.restore();
}

const follows = (time, step, before) => time - before.time <= 1.5 * Math.max(step, before.step) + 0.001;

// Where there are no readings: between them, and up to now.
function gaps(found, now) {
  const times = [];
  let before = null;
  for (const [time, , , step] of found) {
    if (before && !follows(time, step, before)) times.push([before.time, time - step]);
    before = { time, step };
  }
  if (before && !follows(now, 1, before)) times.push([before.time, now]);
  return times;
}

function hatch({ pen, em, thick }, area, left, right) {
  pen.save();
  pen.beginPath(); pen.rect(left, area.top, right - left, area.height); pen.clip();
  pen.fillStyle = shade("paper");
  pen.fillRect(left, area.top, right - left, area.height);
  pen.strokeStyle = shade("outline");
  pen.lineWidth = thick;
  pen.beginPath();
  const bottom = area.top + area.height;
  for (let at = left - area.height - (left % (em / 2)); at < right; at += em / 2) { pen.moveTo(at, bottom); pen.lineTo(at + area.height, area.top); }
  pen.stroke();
  pen.restore();
}

function drawThreshold({ pen, em, thick }, area, limit) {
  const y = Math.round(area.y(limit.at)) + 0.5;
  const text = `${short(connection.column(limit.column))} ${limit.above === undefined ? "at least" : "limit"} ${limit.at}`;
  pen.strokeStyle = pen.fillStyle = shade("red");
  pen.lineWidth = thick;
  pen.setLineDash([em / 3, em / 3]);
  pen.beginPath(); pen.moveTo(area.left, y); pen.lineTo(area.left + area.width, y); pen.stroke();
  pen.setLineDash([]);
  pen.textAlign = "left";
  pen.textBaseline = y - 1.2 * em < area.top ? "top" : "bottom";
  pen.fillText(text, area.left + em / 2, y);
}

// A line through the least and greatest of each pixel, broken where there was no sound.
function drawCourse({ pen, thick }, area, x, found, name) {
  const runs = [];
  let before = null;
  for (const [time, least, greatest, step] of found) {
    const px = Math.round(x(time));
    if (!before || !follows(time, step, before)) runs.push([]);
    const run = runs[runs.length - 1], last = run[run.length - 1];
    if (last && last.px === px) { last.least = Math.min(last.least, least); last.greatest = Math.max(last.greatest, greatest); }
    else run.push({ px, least, greatest });
    before = { time, step };
  }
  const color = shade(colorOf(name));
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = (name.startsWith("ltl_") ? 2.5 : name.startsWith("stl_") ? 1.25 : 2) * thick;
  const floor = area.top + area.height;
  for (const run of runs) {
    const line = new Path2D();
    run.forEach(({ px, least, greatest }) => { line.lineTo(px, area.y(greatest)); if (greatest > least) line.lineTo(px, area.y(least)); });
    if (name.startsWith("stl_")) {
      const fill = new Path2D(line);
      fill.lineTo(run[run.length - 1].px, floor);
      fill.lineTo(run[0].px, floor);
      pen.globalAlpha = 0.12; pen.fill(fill); pen.globalAlpha = 1;
    }
    pen.stroke(line);
  }
}

const HZ = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000];
const camOf = (hz) => 21.366 * Math.log10(0.004368 * hz + 1);
let top_ = 0.5, calm = 0;

function drawSpecific() {
  const found = patterns.find((one) => (one.microphone || "") === whose);
  at("specific").hidden = !found || view.length > 0;
  if (!found || view.length || frozen || !at("specific").open) return;
  const canvas = ready(at("specific").querySelector("canvas"));
  const { pen, thick } = canvas;
  const peak = Math.max(0.01, ...found.sone.flat().filter((value) => value !== null));
  const needed = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((top) => peak <= top) || peak;
  calm = needed < top_ ? calm + 1 : 0;
  if (needed > top_ || calm > 50) { top_ = needed; calm = 0; }
  const low = found.at[0], high = found.at[found.at.length - 1];
  const area = place(canvas, 0, top_);
  const x = (value) => area.left + area.width * (value - low) / (high - low);
  const cam = found.scale === "erb_number";
  const marks = cam ? HZ.map((hz) => [x(camOf(hz)), hz < 1000 ? `${hz}` : `${hz / 1000}k`]) : [4, 8, 12, 16, 20, 24].map((bark) => [x(bark), `${bark}`]);
  frame(pen, area, 0, top_, marks);
  const ears = found.sone.length === 2 ? "left filled, right a line" : "";
  at("scale").textContent = [found.unit, cam ? "Hz" : "Bark", ears].filter(Boolean).join("; ");
  found.sone.forEach((ear, index) => {
    pen.strokeStyle = pen.fillStyle = shade(index ? "right" : "left");
    pen.lineWidth = 1.5 * thick;
    const line = new Path2D();
    ear.forEach((value, i) => line.lineTo(x(found.at[i]), area.y(value || 0)));
    if (!index) {
      const fill = new Path2D(line);
      fill.lineTo(x(high), area.y(0));
      fill.lineTo(x(low), area.y(0));
      pen.globalAlpha = 0.25; pen.fill(fill); pen.globalAlpha = 1;
    }
    pen.stroke(line);
  });
}

// Numbers change at 5 Hz, lines at 10 Hz; a hidden page draws nothing.
let turn = 0;
setInterval(() => {
  if (document.hidden) return;
  turn += 1;
  if (turn % 2 === 0) showNumbers();
  if (!view.length) { drawHistory(); drawSpecific(); }
}, 100);
