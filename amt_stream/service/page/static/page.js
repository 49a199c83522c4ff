// The page of a running meter: readings, their history, specific loudness, what happened.
//   ?view=ltl,laeq_db     only these readings, by name, with or without the unit; as large as fits
//   ?transparent=1        without a background, for a picture that stands over another
//   ?microphone=desk      of several that are heard, this one
//   ?theme=light|dark     in place of the system's
//   #token=...            in place of typing it, as a browser source of OBS cannot; it goes to no log

import { Connection, caption, doubts, words } from "./amt-meter.js";

const asked = new URLSearchParams(location.search);
const view = (asked.get("view") || "").split(",").filter(Boolean);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("amt-token", given);
  history.replaceState(null, "", location.pathname + location.search); // not to be looked at, or kept
}
addEventListener("hashchange", () => location.reload());
const connection = Connection.to(null);
const MOST = 12;
const KEPT_S = 3600;
const EVENTS = 50;
const COLORS = ["first", "second", "third", "fourth"];
const at = (id) => document.getElementById(id);
const points = new Map(); // of each row and column: times and values, the newest KEPT_S of them
let columns = [];
let drawn = [];
let whose = asked.get("microphone") || "";
let limits = [];
let patterns = [];

document.body.classList.toggle("view", view.length > 0);
document.body.classList.toggle("transparent", asked.get("transparent") === "1");
if (asked.get("theme")) document.documentElement.dataset.theme = asked.get("theme");

function button(column) {
  const made = document.createElement("button");
  made.className = "number";
  made.type = "button";
  made.title = column.name + (column.note ? `: ${column.note}` : "");
  const parts = {};
  for (const name of ["what", "value", "unit"]) {
    parts[name] = document.createElement("span");
    parts[name].className = name;
    made.append(parts[name], name === "value" ? " " : "");
  }
  const key = document.createElement("span");
  key.className = "key";
  parts.what.append(key, caption(column));
  parts.unit.textContent = column.unit;
  parts.value.textContent = "---";
  made.addEventListener("click", () => toggle(column));
  return { column, made, key, value: parts.value };
}

function toggle(column) {
  const there = drawn.includes(column.name);
  const alike = drawn.filter((name) => connection.column(name)?.unit === column.unit);
  drawn = there ? drawn.filter((name) => name !== column.name) : [...alike, column.name].slice(-COLORS.length);
  showKeys();
}

function showKeys() {
  for (const { column, made, key } of columns) {
    const place = drawn.indexOf(column.name);
    made.setAttribute("aria-pressed", String(place >= 0));
    key.style.color = place < 0 ? "" : `var(--${COLORS[place]})`;
    key.classList.toggle("dashed", place % 2 === 1);
  }
  const unit = drawn.length ? connection.column(drawn[0])?.unit : "";
  at("legend").textContent = drawn.length ? `${unit}; click a reading to add it or take it away` : "click a reading to see it here";
}

const isCalled = (column, name) => [name, `${name}_${column.unit.toLowerCase()}`].includes(column.name);

// What the address asks for, and the measurement does not have.
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
    for (const name of ["light", "words", "quiet"]) {
      const part = document.createElement("span");
      part.className = name;
      made.append(part);
    }
    limit.parts = [...made.children];
    return made;
  }));
}

// The state of each, its reading, and how loud it may still be.
function drawLimits(row) {
  for (const limit of limits) {
    const [light, said, more] = limit.parts;
    const column = connection.column(limit.column) || { unit: "", name: limit.column };
    const state = row ? row[`limit_${limit.name}`] || "unknown" : "unknown";
    const bound = limit.above === undefined ? `not below ${limit.below}` : `limit ${limit.above}`;
    light.textContent = state;
    light.dataset.state = state;
    said.textContent = `${limit.name.replaceAll("_", " ")}: ${row ? words(column, row[limit.column]) : "---"} ${column.unit}, ${bound}`;
    const [, stem, side] = limit.column.match(/^(.*?)(_left|_right)?_db$/) || [];
    const number = String(limit.above).replace(".", "p");
    const allowed = row && row[`${stem}_allowed_${number}${side || ""}_db`];
    const left = row && row[`${stem}_until_${number}${side || ""}_s`];
    const told = [];
    const value = row && row[limit.column];
    const beyond = typeof value === "number" && (limit.above === undefined ? value < limit.below : value > limit.above);
    if (state === "amber" && beyond) told.push(`${limit.above === undefined ? "below" : "above"} it so far: the window is not whole yet`);
    const forecasts = told.length;
    if (typeof allowed === "number") told.push(`allowed from now on ${allowed.toFixed(1)}`);
    if (typeof left === "number" && left > 0) told.push(`as it is now ${left >= 120 ? `${Math.round(left / 60)} min` : `${Math.round(left)} s`} left`);
    if (told.length > forecasts) told[forecasts] = `forecast: ${told[forecasts]}`;
    more.textContent = told.join("; ");
  }
}

connection.addEventListener("header", ({ detail: header }) => {
  points.clear();
  const keys = new Set(["row", "ear", "channel"]);
  limits = header.limits || [];
  const ofLimits = new Set(limits.map((one) => `limit_${one.name}`));
  const numbers = header.columns.filter((one) => !ofLimits.has(one.name) && one.statistic !== "forecast" && (one.unit !== "" || !keys.has(one.name)));
  showLimits();
  const chosen = view.length ? numbers.filter((one) => view.some((name) => isCalled(one, name))) : numbers.slice(0, MOST);
  showMissing(numbers, Object.keys(header.source.microphones || {}));
  columns = chosen.map(button);
  at("numbers").replaceChildren(...columns.map((one) => one.made));
  at("numbers").style.setProperty("--columns", String(Math.min(columns.length, 3)));
  const first = numbers.find((one) => one.unit === "phon") || numbers[0];
  drawn = numbers.filter((one) => first && one.unit === first.unit && one.statistic === "instantaneous").slice(0, 2).map((one) => one.name);
  at("source").textContent = header.source.name;
  document.title = `${header.source.name}: amt_stream`;
  at("kept").textContent = header.kept_sound_s ? `keeps ${header.kept_sound_s} s of sound` : "";
  at("replay").hidden = !header.kept_sound_s;
  const microphones = Object.keys(header.source.microphones || {});
  at("whose").hidden = microphones.length === 0;
  const select = at("whose").querySelector("select");
  select.replaceChildren(...microphones.map((name) => new Option(name, name)));
  if (microphones.length && !microphones.includes(whose)) whose = microphones[0];
  if (!microphones.length) whose = "";
  select.value = whose;
  showKeys();
});

at("whose").addEventListener("change", (event) => { whose = event.target.value; });

connection.addEventListener("row", ({ detail: row }) => {
  const key = row.row || "";
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

const STATES = { starting: "starting", waiting: "waiting for the microphone", measuring: "measuring", paused: "paused", stopped: "stopped", ended: "the sound has ended", failed: "failed" };

connection.addEventListener("state", ({ detail: state }) => {
  at("state").textContent = STATES[state.state] || state.state;
  at("state").classList.toggle("doubt", state.state !== "measuring");
  const running = state.state === "measuring" || state.state === "paused";
  const waiting = state.state === "waiting";
  at("pause").textContent = state.state === "paused" ? "Resume" : "Pause";
  at("pause").dataset.command = state.state === "paused" ? "unpause" : "pause";
  at("stop").textContent = running || waiting ? "Stop" : "Start";
  at("stop").dataset.command = running || waiting ? "stop" : "start";
  for (const id of ["pause", "reset_readings", "mark"]) at(id).disabled = !running;
  const health = state.health;
  const logs = (state.logs || []).map((log) => `log in ${log.path}${log.note ? ` (${log.note})` : ""}`);
  const load = health ? [`load ${Math.round(100 * health.load)} %`] : [];
  const lost = health && health.lost_samples ? [`${health.lost_samples} samples lost`] : [];
  at("note").textContent = [state.error, ...(waiting || state.state === "starting" ? state.why : []), health ? health.note : "", ...load, ...lost, ...logs].filter(Boolean).join(" · ");
});

connection.addEventListener("event", ({ detail: event }) => {
  const item = document.createElement("li");
  item.textContent = `${clock(event.time_s)} ${event.kind}${event.microphone ? ` (${event.microphone})` : ""}: ${event.text}`;
  const list = at("events").querySelector("ol");
  list.prepend(item);
  while (list.children.length > EVENTS) list.lastChild.remove();
  at("events").hidden = false;
});

connection.addEventListener("specific", ({ detail }) => {
  patterns = [...patterns.filter((one) => one.model !== detail.model || one.microphone !== detail.microphone), detail];
});
connection.addEventListener("open", () => { at("token").hidden = true; });
connection.addEventListener("closed", () => {
  at("state").textContent = "no connection";
  at("state").classList.add("doubt");
});
connection.addEventListener("token", () => {
  sessionStorage.removeItem("amt-token");
  at("token").hidden = false;
});
connection.addEventListener("reply", ({ detail }) => { if (detail.error) at("note").textContent = detail.error; });
if (!view.length) connection.subscribe(["header", "row", "event", "state", "summary", "specific"]);

at("token").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("amt-token", new FormData(event.target).get("token"));
  at("token").hidden = true;
  connection.socket.close();
});
for (const one of document.querySelectorAll("button[data-command]")) {
  one.addEventListener("click", () => connection.send({ command: one.dataset.command }));
}
at("mark").addEventListener("click", () => {
  const text = prompt("What is to be marked here?");
  if (text) connection.send({ command: "mark", text });
});
at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

function showNumbers() {
  const row = connection.rows.get(whose);
  for (const { column, made, value } of columns) {
    const text = row ? words(column, row[column.name]) : "---";
    value.textContent = text;
    made.classList.toggle("doubtful", doubts(row, column).length > 0);
  }
  drawLimits(row);
  const longest = Math.max(3, ...columns.map((one) => one.value.textContent.length));
  at("numbers").style.setProperty("--digits", String(longest));
  const found = doubts(row, null).filter((word) => word !== "uncalibrated" && word !== "settling");
  if (row && row.settling) found.push("settling");
  at("doubts").textContent = found.join(", ");
  at("doubts").classList.toggle("doubt", found.length > 0);
  at("calibrated").textContent = !row ? "" : row.calibrated ? "calibrated" : "uncalibrated";
  at("calibrated").classList.toggle("doubt", Boolean(row && !row.calibrated));
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
  pen.font = "13px system-ui, sans-serif";
  return { pen, width, height };
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
  pen.strokeStyle = shade("line");
  pen.fillStyle = shade("quiet");
  pen.lineWidth = 1;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const { found, digits } = steps(low, high, Math.max(2, area.height / 30));
  for (const value of found) {
    const y = Math.round(area.y(value)) + 0.5;
    pen.beginPath(); pen.moveTo(area.left, y); pen.lineTo(area.left + area.width, y); pen.stroke();
    pen.fillText(value.toFixed(digits), area.left - 6, y);
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const [x, text] of marks) pen.fillText(text, x, area.top + area.height + 6);
}

function place(width, height, low, high) {
  const area = { left: 48, top: 8, width: width - 60, height: height - 34 };
  area.y = (value) => area.top + area.height * (1 - (value - low) / (high - low));
  return area;
}

function drawHistory() {
  const { pen, width, height } = ready(at("history").querySelector("canvas"));
  const kept = points.get(whose);
  if (!kept || !kept.time.length || !drawn.length || width < 80) return;
  const span = Number(at("span").value);
  const now = kept.time[kept.time.length - 1];
  let first = kept.time.length - 1;
  while (first > 0 && kept.time[first - 1] >= now - span) first -= 1;
  let low = Infinity, high = -Infinity;
  for (let i = first; i < kept.rows.length; i += 1) {
    for (const name of drawn) {
      const value = kept.rows[i][name];
      if (typeof value === "number") { low = Math.min(low, value); high = Math.max(high, value); }
    }
  }
  if (!(high >= low)) return;
  const sone = connection.column(drawn[0])?.unit === "sone";
  low = sone ? 0 : Math.floor(low / 10) * 10;
  high = Math.max(sone ? high * 1.05 : Math.ceil(high / 10) * 10, low + (sone ? 0.1 : 10));
  const area = place(width, height, low, high);
  const x = (time) => area.left + area.width * (1 - (now - time) / span);
  const every = [1, 5, 10, 15, 60, 300, 600, 900].find((s) => span / s <= Math.max(2, area.width / 90));
  const marks = [];
  for (let t = Math.ceil((now - span) / every) * every; t <= now; t += every) if (t >= 0) marks.push([x(t), clock(t)]);
  frame(pen, area, low, high, marks);
  drawn.forEach((name, index) => {
    pen.strokeStyle = shade(COLORS[index]);
    pen.lineWidth = 1.5;
    pen.setLineDash(index % 2 ? [6, 4] : []);
    pen.beginPath();
    let before = null, column = -1, least = 0, most = 0;
    for (let i = first; i < kept.rows.length; i += 1) {
      const value = kept.rows[i][name];
      const broken = before === null || kept.time[i] - before > 1.5 * (connection.header.step_ms / 1000) + 0.001;
      if (typeof value !== "number") { before = null; continue; }
      const px = Math.round(x(kept.time[i]));
      if (broken) pen.moveTo(px, area.y(value));
      else if (px !== column) { pen.lineTo(px, area.y(value)); least = most = value; }
      else if (value < least || value > most) { pen.lineTo(px, area.y(value)); least = Math.min(least, value); most = Math.max(most, value); }
      if (px !== column) { least = most = value; column = px; }
      before = kept.time[i];
    }
    pen.stroke();
    pen.setLineDash([]);
  });
}

const HZ = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000];
const camOf = (hz) => 21.366 * Math.log10(0.004368 * hz + 1);
let top_ = 0.5, calm = 0;

function drawSpecific() {
  const found = patterns.find((one) => (one.microphone || "") === whose);
  at("specific").hidden = !found || view.length > 0;
  if (!found || view.length) return;
  const { pen, width, height } = ready(at("specific").querySelector("canvas"));
  const peak = Math.max(0.01, ...found.sone.flat().filter((value) => value !== null));
  const needed = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((top) => peak <= top) || peak;
  calm = needed < top_ ? calm + 1 : 0;
  if (needed > top_ || calm > 50) { top_ = needed; calm = 0; }
  const low = found.at[0], high = found.at[found.at.length - 1];
  const area = place(width, height, 0, top_);
  const x = (value) => area.left + area.width * (value - low) / (high - low);
  const cam = found.scale === "erb_number";
  const marks = cam ? HZ.map((hz) => [x(camOf(hz)), hz < 1000 ? `${hz}` : `${hz / 1000}k`]) : [4, 8, 12, 16, 20, 24].map((bark) => [x(bark), `${bark}`]);
  frame(pen, area, 0, top_, marks);
  const ears = found.sone.length === 2 ? "left solid, right dashed" : "";
  at("scale").textContent = [found.unit, cam ? "Hz" : "Bark", ears].filter(Boolean).join("; ");
  found.sone.forEach((ear, index) => {
    pen.strokeStyle = shade(COLORS[index]);
    pen.lineWidth = 1.5;
    pen.setLineDash(index % 2 ? [6, 4] : []);
    pen.beginPath();
    ear.forEach((value, i) => pen.lineTo(x(found.at[i]), area.y(value || 0)));
    pen.stroke();
    pen.setLineDash([]);
  });
}

// Numbers are read at 5 Hz, lines move at 10; nothing is drawn that nobody sees.
let turn = 0;
setInterval(() => {
  if (document.hidden) return;
  turn += 1;
  if (turn % 2 === 0) showNumbers();
  if (!view.length) { drawHistory(); drawSpecific(); }
}, 100);
