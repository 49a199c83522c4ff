// <amt-meter column="ltl_phon"> shows one reading of a running `amt-stream serve` in any page.
//   src     WebSocket of the server; by default that of the page itself
//   column  name of the reading, as the header tells it
//   microphone   of several that are heard, whose
//   label   words in place of the column's own
// A server on another host, or for another page, is started with --allow-origin and a token file.

const STALE_MS = 3000;

// One connection per server, shared by all elements; it reconnects automatically.
export class Connection extends EventTarget {
  static #known = new Map();

  static to(address) {
    const url = address || `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
    if (!Connection.#known.has(url)) Connection.#known.set(url, new Connection(url));
    return Connection.#known.get(url);
  }

  constructor(url) {
    super();
    this.url = url;
    this.header = null;
    this.state = null;
    this.rows = new Map();
    this.wanted = null;
    this.pause = 500;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.socket = new WebSocket(this.url);
    this.socket.onopen = () => {
      const token = sessionStorage.getItem("amt-token");
      if (token) this.socket.send(JSON.stringify({ token }));
      if (this.wanted) this.send({ subscribe: this.wanted });
      this.tell("open");
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = (event) => {
      this.tell(event.code === 1008 && event.reason.includes("token") ? "token" : "closed");
      this.timer = setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(10000, 2 * this.pause);
    };
  }

  subscribe(kinds) {
    this.wanted = kinds;
    this.send({ subscribe: kinds });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take(message) {
    this.pause = 500; // the server has let it in
    if ("time_s" in message) {
      this.rows.set(message.row || "", { ...message, came: performance.now() });
      this.tell("row", message);
    } else {
      const [kind] = Object.keys(message);
      if (kind === "header" || kind === "state") this[kind] = message[kind];
      if (kind === "header") this.rows.clear();
      this.tell(kind, message[kind]);
    }
  }

  tell(kind, detail) {
    this.dispatchEvent(new CustomEvent(kind, { detail }));
  }

  column(name) {
    return this.header && this.header.columns.find((column) => column.name === name);
  }
}

// A reading in words, with the digits of all other displays; "---" where there is none.
export function words(column, value) {
  if (value === null || value === undefined) return "---";
  if (typeof value === "string") return value;
  const { name, unit } = column;
  if (unit === "s" || (unit === "Hz" && value >= 999.95)) return fixed(value, 0);
  if (["acum", "tu_HMS", "asper", "vacil_HMS"].includes(unit)) return fixed(value, 2);
  if (["sone", "sone_HMS"].includes(unit) && value < 99.995) return fixed(value, 2);
  if (unit === "phon" && value >= 120 && !name.startsWith("zwicker")) return ">120";
  const tenths = fixed(Math.abs(value) < 0.05 ? 0 : value, 1);
  return unit === "LU" && name !== "lra_lu" && value > -0.05 ? `+${tenths}` : tenths;
}

// The same of a row, with a sign if it includes clipped sound.
export function reading(column, row) {
  const text = words(column, row[column.name]);
  const clipped = (row.clipped_columns || "").split(" ");
  const named = clipped[0] === "all" || clipped.includes(column.name);
  return named && !/^[->]*$|^>/.test(text) ? (SIGNS[column.if_clipped] || "") + text : text;
}
const SIGNS = { "at least": "\u2265 ", "at most": "\u2264 ", "uncertain": "\u2248 " };

// Halves, such as 60.25, go to the even digit as in Python.
function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const half = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
  return (half ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
}

// Programme loudness and true peaks refer to full scale, not to sound pressure.
export const needsLevel = (column) => !["LUFS", "LU", "dBTP"].includes(column.unit);

// Why a reading is not reliable, a word each.
export function doubts(row, column) {
  if (!row) return ["no reading yet"];
  const found = [];
  if (performance.now() - row.came > STALE_MS) found.push("stale");
  if (!row.calibrated && column && needsLevel(column)) found.push("uncalibrated");
  // Of a computer that is too slow only what is missing is in doubt: a model that is off has no value.
  const off = column && row[column.name] === null ? [] : ["off"];
  const harmless = column ? ["overload", ...off] : [];
  if (row.fault) found.push(...row.fault.split(" ").filter((word) => !harmless.includes(word)).map((word) => word === "off" ? "switched off" : word.replace("_", " ")));
  const settling = row.settling_columns.split(" ");
  if (row.settling && (settling[0] === "all" || !column || settling.includes(column.name))) found.push("settling");
  return found;
}

const STYLE = `
  :host { display: inline-block; font-family: system-ui, sans-serif; line-height: 1.15; text-align: center; }
  .value { font-size: 3em; font-variant-numeric: tabular-nums; }
  .unit { font-size: 1em; opacity: .8; }
  .label { font-size: 1em; }
  .doubt { font-size: .8em; min-height: 1.2em; }
  .doubtful .value { opacity: .55; }
`;

class AmtMeter extends HTMLElement {
  static observedAttributes = ["src", "column", "microphone", "label"];

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const style = document.createElement("style");
    style.textContent = STYLE;
    this.parts = {};
    const box = document.createElement("div");
    for (const name of ["label", "value", "unit", "doubt"]) {
      this.parts[name] = document.createElement(name === "value" || name === "unit" ? "span" : "div");
      this.parts[name].className = name;
      box.append(this.parts[name], name === "value" ? " " : "");
    }
    this.box = box;
    root.append(style, box);
    this.draw = this.draw.bind(this);
  }

  connectedCallback() {
    this.connection = Connection.to(this.getAttribute("src"));
    for (const kind of ["row", "header", "state"]) this.connection.addEventListener(kind, this.draw);
    this.timer = setInterval(this.draw, 1000);
    this.draw();
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    for (const kind of ["row", "header", "state"]) this.connection.removeEventListener(kind, this.draw);
  }

  attributeChangedCallback() {
    if (this.connection) this.draw();
  }

  draw() {
    const name = this.getAttribute("column") || "ltl_phon";
    const row = this.connection.rows.get(this.getAttribute("microphone") || "");
    const column = this.connection.column(name);
    const { label, value, unit, doubt } = this.parts;
    label.textContent = this.getAttribute("label") || (column ? caption(column) : name);
    const away = ["lost", "silent"].filter((one) => one === this.connection.state?.health?.device_state);
    value.textContent = column && row && !away.length ? reading(column, row) : "---";
    unit.textContent = column ? column.unit : "";
    const found = column || !this.connection.header ? [...away, ...doubts(row, column)] : ["there is no such reading"];
    doubt.textContent = found.join(", ");
    this.box.className = found.length ? "doubtful" : "";
  }
}

// A column as all displays name it: in words with its symbol, and as short as in the window's legend.
export function caption({ label, symbol, quantity }) {
  if (!label) return quantity.charAt(0).toUpperCase() + quantity.slice(1);
  return symbol ? `${label} (${symbol})` : label;
}
export const short = (column) => column.symbol || caption(column);

customElements.define("amt-meter", AmtMeter);
