// <amt-meter column="ltl_phon"> shows one reading of a running `amt-stream serve` in any page.
//   src     WebSocket of the server; by default that of the page itself
//   column  name of the reading, as the header tells it
//   microphone   of several that are heard, whose
//   label   words in place of the column's own
// A server on another host, or for another page, is started with --allow-origin and a token file.

// Whether no message has come for so long after what is shown; the server knows when rows are late.
export const isOlder = (screen, seconds) => performance.now() - screen.came > 1000 * seconds;

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
    this.screens = new Map(); // by microphone: what is shown now, decided by the server
    this.wanted = new Set();
    this.pause = 500;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.socket = new WebSocket(this.url);
    this.socket.onopen = () => {
      const token = sessionStorage.getItem("amt-token");
      if (token) this.socket.send(JSON.stringify({ token }));
      this.subscribe([]);
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
    for (const kind of kinds) this.wanted.add(kind);
    if (this.wanted.size) this.send({ subscribe: [...this.wanted] });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take(message) {
    this.pause = 500; // the server has let it in
    if ("time_s" in message) {
      this.tell("row", message);
    } else {
      const [kind] = Object.keys(message);
      if (kind === "header" || kind === "state") this[kind] = message[kind];
      if (kind === "screen") this.screens.set(message.screen.microphone, { ...message.screen, came: performance.now() });
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
    this.connection.subscribe(["header", "screen"]);
    for (const kind of ["header", "screen"]) this.connection.addEventListener(kind, this.draw);
    this.timer = setInterval(this.draw, 1000);
    this.draw();
  }

  disconnectedCallback() {
    clearInterval(this.timer);
    for (const kind of ["header", "screen"]) this.connection.removeEventListener(kind, this.draw);
  }

  attributeChangedCallback() {
    if (this.connection) this.draw();
  }

  draw() {
    const name = this.getAttribute("column") || "ltl_phon";
    const screen = this.connection.screens.get(this.getAttribute("microphone") || "");
    const column = this.connection.column(name), shown = screen?.readings[name];
    const { label, value, unit, doubt } = this.parts;
    label.textContent = this.getAttribute("label") || (column ? caption(column) : name);
    value.textContent = column && shown ? shown.text : "---";
    unit.textContent = column ? column.unit : "";
    const found = shown ? [...shown.doubts] : [column || !this.connection.header ? "no reading yet" : "there is no such reading"];
    if (screen && isOlder(screen, screen.stale_after_s) && !found.includes("stale")) found.push("stale");
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
