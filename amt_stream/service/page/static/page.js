// The page of a running meter: readings, their history, specific loudness, events.
//   ?view=ltl,laeq_db     only these readings, by name, with or without the unit; as large as fits
//   ?transparent=1        without a background, to overlay it on a video
//   ?microphone=desk      one of several microphones
//   ?theme=light|dark     instead of the system's
//   #token=...            instead of typing it, for browser sources of OBS; it appears in no log

import { Connection, caption, doubts, needsLevel, reading, short } from "./amt-meter.js";
import { ALONE, AWAY, BETWEEN, MEASURING, OF_FAULT, SIGNS } from "./states.js";

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
const STALE_MS = 1000; // beyond the step of the rows; as LATE_S in amt_stream/views/view_state.py
const RECENT_MS = 1000; // a fault is shown for so long
const ANSWER_MS = 5000; // and why a command was refused
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
const limitTexts = new Map(); // by microphone: its limits in words
const faults = new Map(); // by microphone: when each fault came last
let answer = { text: "", came: -Infinity }; // to the last command that was refused
let frozen = null; // while the readings are held: their row, and its limits in words

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

// The state and the reading of each limit in the words of the server; nothing is known without a current row.
function drawLimits(row, stale) {
  for (const { what } of columns) { delete what.dataset.state; delete what.dataset.words; }
  const known = Boolean(row) && !stale && MEASURING.includes(reached());
  for (const limit of limits) {
    const [light, reading, more] = limit.parts;
    const texts = (frozen ? frozen.limits : limitTexts.get(whose))?.find((one) => one.name === limit.name);
    const state = known && texts ? texts.state : "unknown";
    light.textContent = known && texts ? texts.word : MEASURING.includes(reached()) ? "Not known yet" : `Not known: ${reached()}`;
    light.dataset.state = state;
    // Over another picture the number has the words itself, those of the worst of its limits.
    const own = columns.find((one) => one.column.name === limit.column)?.what.dataset;
    if (own && (state === "red" || (state === "amber" && own.state !== "red"))) Object.assign(own, { state, words: light.textContent });
    reading.textContent = texts ? tied(row && !stale ? texts.value : texts.without) : "";
    more.textContent = known && texts ? tied(texts.more) : "";
  }
}

connection.addEventListener("limits", ({ detail }) => { limitTexts.set(detail.microphone, detail.of); });

connection.addEventListener("header", ({ detail: header }) => {
  freeze(null);
  points.clear();
  past.clear();
  faults.clear();
  limitTexts.clear();
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
  if (!faults.has(key)) faults.set(key, new Map());
  for (const name of row.fault.split(" ").filter(Boolean)) faults.get(key).set(name, performance.now());
  if (!points.has(key)) points.set(key, { time: [], rows: [] });
  const kept = points.get(key);
  if (kept.time.length && row.time_s <= kept.time[kept.time.length - 1]) { kept.time.length = 0; kept.rows.length = 0; }
  kept.time.push(row.time_s);
  kept.rows.push(row);
  if (kept.time[0] < row.time_s - KEPT_S - 60) {
    const from = kept.time.findIndex((time) => time >= row.time_s - KEPT_S);
    kept.time.splice(0, from);
    kept.rows.splice(0, from);
  }
});

// How far the measurement is: the server's word, unless it is not reached or its microphone is silent.
function reached() {
  if (refused) return "token needed";
  if (connection.socket.readyState === WebSocket.CONNECTING && !tried) return "connecting";
  if (connection.socket.readyState !== WebSocket.OPEN) return "no connection";
  const state = connection.state;
  if (!state) return "connecting";
  if (state.state !== "measuring") return state.state;
  const device = state.health?.device_state;
  return device in AWAY || device === "stalled" ? device : "running";
}

// The states that hold, the worst first: as `rank_states` in amt_stream/meters/state_signs.py.
function states(row) {
  const now = reached();
  const found = new Set(frozen ? [now, "frozen"] : [now]);
  if (MEASURING.includes(now) && row) {
    if (connection.state.health?.overloaded) found.add("too slow");
    for (const [name, came] of faults.get(row.row || "") || []) if (performance.now() - came < Math.max(RECENT_MS, 2 * connection.header.step_ms)) found.add(OF_FAULT[name]);
    if (row.settling) found.add("settling");
    if (!row.calibrated && columns.some((one) => needsLevel(one.column))) found.add("uncalibrated");
    for (const limit of limits) if (row[`limit_${limit.name}`] === "red") found.add(limit.above === undefined ? "below limit" : "over limit");
  }
  const ranked = Object.keys(SIGNS).filter((name) => found.has(name));
  return ranked.filter((name, k) => k === 0 || !ALONE.includes(name));
}

const tied = (text) => text.replace(/(?<=\d) /g, "\u00a0"); // a unit stays on the line of its number
const sourceName = ({ station, source }) => station ? `${station}: ${source.name}` : source.name;
const begun = (word) => word.charAt(0).toUpperCase() + word.slice(1);

function showState(row) {
  const [worst, second, ...more] = states(row);
  const chip = at("chip"), sign = SIGNS[worst];
  at("state").textContent = begun(worst);
  at("also").textContent = (second ? `${BETWEEN}${second}` : "") + (more.length ? ` +${more.length}` : "");
  if (chip.dataset.state !== worst) {
    chip.dataset.state = worst;
    chip.classList.toggle("filled", sign.filled);
    chip.style.setProperty("--sign", `var(--${sign.color})`);
    chip.querySelector("path").setAttribute("d", sign.path);
  }
  const name = connection.header ? `${sourceName(connection.header)}: amt_stream` : "amt_stream";
  document.title = worst === "running" ? name : `${begun(worst)} - ${name}`;
}

// The one thing that keeps this page from showing the sound of now, with the time since it began.
let trouble = "", troubleKind = "", troubleSince = 0;

function showBanner(text) {
  const kind = text ? reached() : "";
  if (kind !== troubleKind) troubleSince = performance.now();
  [trouble, troubleKind] = [text, kind];
  at("banner").hidden = !text;
  const since = clock((performance.now() - troubleSince) / 1000).slice(3);
  if (text) at("banner").textContent = text.includes("{clock}") ? text.replace("{clock}", since) : `${text} (${since})`;
}

function troubleOf() {
  const { state, header } = connection, now = reached();
  if (now in AWAY) return AWAY[now].replace("{name}", () => header ? header.source.name : "the microphone").replace("{note}", () => state.health.note);
  switch (now) {
    case "no connection": return "No connection to the meter; trying again";
    case "failed": return `The measurement failed: ${state.error}`;
    case "waiting": return `Waiting for the microphone${state.why.length ? `: ${state.why[0]}` : ""}`;
    default: return "";
  }
}

connection.addEventListener("state", ({ detail: state }) => {
  accept();
  showState(connection.rows.get(whose));
  const running = state.state === "measuring" || state.state === "paused";
  const waiting = state.state === "waiting";
  at("pause").textContent = state.state === "paused" ? "Resume" : "Pause";
  at("pause").dataset.command = state.state === "paused" ? "unpause" : "pause";
  at("stop").textContent = running || waiting ? "Stop" : "Start";
  at("stop").dataset.command = running || waiting ? "stop" : "start";
  for (const id of ["pause", "reset_readings", "mark"]) at(id).disabled = !running;
  const health = state.health;
  const logs = (state.logs || []).map((log) => `log in ${log.path}${log.note ? ` (${log.note})` : ""}`);
  const slow = health?.slow_because ? `, too slow: ${health.slow_because}` : "";
  const load = health ? [`load ${Math.round(100 * health.load)} %${slow}`] : [];
  const lost = health && health.lost_samples ? [`${health.lost_samples} samples lost`] : [];
  const why = waiting ? state.why.slice(1) : state.state === "starting" ? state.why : [];
  const said = troubleOf() ? [] : [state.error, health ? health.note : ""]; // else the banner says it
  const refusal = performance.now() - answer.came < ANSWER_MS ? [answer.text] : [];
  at("note").textContent = [...refusal, ...said, ...why, ...load, ...lost, ...logs].filter(Boolean).join(" · ");
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

connection.addEventListener("closed", () => { tried = true; showState(null); });
connection.addEventListener("token", () => {
  at("asked").textContent = sessionStorage.getItem("amt-token") ? "The token was refused. Token:" : "This meter requires a token:";
  sessionStorage.removeItem("amt-token");
  refused = true;
  at("token").hidden = false;
});
connection.addEventListener("reply", ({ detail }) => {
  if (!detail.error) return;
  answer = { text: detail.error, came: performance.now() };
  at("note").textContent = detail.error;
});
connection.subscribe(["header", "row", "event", "state", "summary", "limits", ...(view.length ? [] : ["specific"])]);

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
at("freeze").addEventListener("click", () => freeze(frozen ? null : connection.rows.get(whose)));
at("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// Hold the readings of this row, or release them; the measurement goes on.
function freeze(row) {
  frozen = row ? { row, limits: limitTexts.get(whose) } : null;
  at("freeze").setAttribute("aria-pressed", String(Boolean(frozen)));
}

function showNumbers() {
  const row = frozen ? frozen.row : connection.rows.get(whose);
  showState(connection.rows.get(whose));
  showBanner(troubleOf());
  const state = connection.state ? connection.state.state : "";
  const late = (state === "measuring" || state === "paused" || !state || trouble) && row && performance.now() - row.came > connection.header.step_ms + STALE_MS;
  const stale = Boolean(row) && !frozen && (late || reached() in AWAY);
  const still = Boolean(frozen) || reached() !== "running";
  const level = (column) => doubts(row, column).includes("uncalibrated") ? "uncalibrated" : "";
  const grey = (column) => still || doubts(row, column).some((one) => one !== "uncalibrated");
  for (const { column, made, value, level: part } of columns) {
    part.textContent = level(column);
    made.classList.toggle("uncalibrated", Boolean(part.textContent));
    value.textContent = row && !stale ? reading(column, row) : "---";
    made.classList.toggle("doubtful", grey(column));
  }
  const parts = [".reading", ".second"].map((name) => at("hero").querySelector(name));
  parts[1].hidden = hero.length < 2;
  hero.forEach((column, k) => {
    parts[k].querySelector(".value").textContent = row && !stale ? reading(column, row) : "---";
    parts[k].querySelector(".unit").textContent = column.unit;
    parts[k].querySelector(".level").textContent = level(column);
    parts[k].classList.toggle("uncalibrated", Boolean(level(column)));
  });
  if (hero.length) {
    write(at("hero").querySelector(".what"), caption(hero[0]));
    at("hero").querySelector(".last").textContent = stale ? `last ${reading(hero[0], row)} ${hero[0].unit}` : "";
    at("hero").classList.toggle("doubtful", grey(hero[0]));
  }
  drawLimits(row, stale);
  const longest = Math.max(3, ...columns.map((one) => one.value.textContent.length));
  at("numbers").style.setProperty("--digits", String(longest));
  at("calibrated").textContent = row?.calibrated ? "calibrated" : "";
  at("elapsed").textContent = row ? clock(row.time_s) : "";
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
  const silent = !frozen && (reached() in AWAY || reached() === "no connection");
  const now = frozen ? frozen.row.time_s : newest + (silent ? (performance.now() - connection.rows.get(whose).came) / 1000 : 0);
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
