// Fills the status page from /v1/live and /v1/events. Data of the server is inserted as text, never as markup.
"use strict";
const by = (id) => document.getElementById(id);
const KEY = "onrush-token", HISTORY = 300, EVENTS = 200, BACKOFF_MAX = 30000;
let token = sessionStorage.getItem(KEY), paused = false, moment = null, running = 0;
const events = [], history = [];

const time = (s) => s == null ? "-" : s < 999.5e-6 ? `${(s * 1e6).toFixed(0)} us` : s < 9.995e-3 ? `${(s * 1e3).toFixed(2)} ms`
  : s < 0.9995 ? `${(s * 1e3).toFixed(0)} ms` : `${s.toFixed(2)} s`;
function amount(n) {
  if (n == null) return "-";
  for (const unit of ["", " k", " M", " G"]) {
    if (n < 999.5) return (unit === "" && Number.isInteger(n) ? String(n) : n.toFixed(n < 9.995 ? 2 : n < 99.95 ? 1 : 0)) + unit;
    n /= 1000;
  }
  return `${n.toFixed(0)} T`;
}
const share = (s) => s == null ? "-" : `${(s * 100).toFixed(0)} %`;
const plain = (s) => s == null ? "-" : String(s);
const uptime = (s) => `${Math.floor(s / 86400)} d ${new Date(s % 86400 * 1000).toISOString().slice(11, 19)}`;

// A column: its heading, the value of a row, and its format. `sort` is the index of the column to sort by at first.
const text = (head, of) => ({ head, of, show: plain, isText: true });
const number = (head, of, show = amount) => ({ head, of, show });
const figures = [number("req/s", (r) => r.rate), number("err/s", (r) => r.errors), number("p50", (r) => r.p50, time), number("p99", (r) => r.p99, time)];
const tables = {
  cores: { sort: 0, down: false, columns: [number("core", (r) => r.core, plain), number("CPU", (r) => r.cpu, plain), number("busy", (r) => r.busy, share),
    number("waiting", (r) => r.waiting, share), number("softirq", (r) => r.softirq, share), number("connections", (r) => r.connections), number("req/s", (r) => r.rate)] },
  routes: { sort: 1, down: true, columns: [text("route", (r) => r.name), ...figures, number("B/s", (r) => r.bytes)] },
  servers: { sort: 0, down: false, columns: [text("group", (r) => r.group), text("server", (r) => r.name), text("state", (r) => r.state), text("wanted", (r) => r.wanted),
    ...figures, number("in flight", (r) => r.inFlight), text("last event", (r) => r.event)] },
  requests: { sort: 0, down: true, columns: [number("age", (r) => r.age, time), text("state", (r) => r.state), text("request", (r) => r.line),
    text("client", (r) => r.client), text("server", (r) => r.server)] },
  events: { sort: 0, down: true, columns: [text("time", (r) => r.time), text("level", (r) => r.level), text("event", (r) => r.event), text("message", (r) => r.message)] },
};

function traffic(said, times, interval) {
  const count = (n) => (n || 0) / interval;
  const lost = said.without_response ?? said.failures;
  return { name: said.name, rate: count(said.requests), errors: count(said.responses["5xx"]) + count(lost), bytes: count(said.bytes_sent),
    p50: said[times].p50, p99: said[times].p99 };
}
function server(group, said, interval) {
  const row = traffic(said, "first_byte", interval);
  row.rate = Object.values(said.responses).reduce((sum, n) => sum + n, said.failures) / interval;
  const event = said.events[said.events.length - 1];
  return { ...row, group: group.name, state: said.state, wanted: said.wanted, inFlight: said.in_flight,
    event: event ? `${event.time} ${event.message}` : "", bad: said.state !== "up" || row.errors > 0 };
}
function rows(said) {
  const per = said.interval > 0 ? said.interval : 1;
  const cores = said.cores.map((c) => ({ ...c, rate: c.requests / per, connections: said.status.cores.find((o) => o.core === c.core)?.connections }));
  for (const core of said.silent_cores) cores.push({ core: `${core} not responding`, bad: true });
  const routes = said.routes.map((r) => traffic(r, "duration", per)).map((r) => ({ ...r, bad: r.errors > 0 }));
  const servers = said.groups.flatMap((g) => g.servers.map((s) => server(g, s, per)));
  const requests = said.requests.map((r) => ({ ...r, line: `${r.method} ${r.target}` }));
  return { cores, routes, servers, requests };
}
function totals(said) {
  const all = said.listeners.map((l) => traffic(l, "duration", said.interval > 0 ? said.interval : 1));
  const sum = (of) => all.reduce((n, one) => n + of(one), 0);
  // Percentiles of several listeners cannot be added, so the highest is shown.
  const worst = (of) => all.map(of).filter((s) => s != null).reduce((a, b) => Math.max(a ?? b, b), null);
  return { rate: sum((t) => t.rate), errors: sum((t) => t.errors), bytes: sum((t) => t.bytes), p50: worst((t) => t.p50), p99: worst((t) => t.p99) };
}

function element(name, content, kind) {
  const made = document.createElement(name);
  if (content != null) made.textContent = content;
  if (kind) made.className = kind;
  return made;
}
function compare(a, b) {
  if (a == null || b == null) return (a == null ? 0 : 1) - (b == null ? 0 : 1);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
function draw(name, all) {
  const table = tables[name], wanted = by("filter").value.toLowerCase();
  const passes = (row) => name === "cores" || table.columns.some((c) => c.isText && plain(c.of(row)).toLowerCase().includes(wanted));
  const { of } = table.columns[table.sort];
  const shown = all.filter(passes).sort((a, b) => compare(of(a), of(b)) * (table.down ? -1 : 1));
  const lines = shown.map((row) => {
    const line = element("tr", null, row.bad ? "bad" : "");
    line.append(...table.columns.map((c) => element("td", c.show(c.of(row)), c.isText ? "text" : "")));
    return line;
  });
  by(name).tBodies[0].replaceChildren(...lines);
  [...by(name).tHead.rows[0].cells].forEach((cell, at) => cell.setAttribute("aria-sort", at !== table.sort ? "none" : table.down ? "descending" : "ascending"));
}
function heads() {
  for (const [name, table] of Object.entries(tables)) {
    const line = by(name).createTHead().insertRow();
    by(name).createTBody();
    table.columns.forEach((column, at) => {
      const cell = element("th", null, column.isText ? "text" : ""), button = element("button", column.head);
      cell.scope = "col";
      button.type = "button";
      button.addEventListener("click", () => {
        table.down = table.sort === at ? !table.down : !column.isText;
        table.sort = at;
        redraw();
      });
      cell.append(button);
      line.append(cell);
    });
  }
}
function redraw() {
  draw("events", events);
  if (!moment) return;
  const { status } = moment, total = totals(moment);
  by("server").textContent = `onrush ${status.version}, process ${status.process}, ${status.phase}, configuration ${status.generation}, ${status.driver}, up ${uptime(status.uptime)}`;
  const tiles = [["requests/s", amount(total.rate)], ["errors/s", amount(total.errors)], ["p50", time(total.p50)], ["p99", time(total.p99)],
    ["bytes/s", amount(total.bytes)], ["in flight", amount(status.in_flight)], ["connections", amount(status.connections)]];
  by("totals").replaceChildren(...tiles.map(([head, value]) => {
    const tile = element("div");
    tile.append(element("dt", head), element("dd", value));
    return tile;
  }));
  const top = Math.max(1, ...history);
  by("line").setAttribute("points", history.map((n, at) => `${HISTORY - history.length + at},${38 - n / top * 36}`).join(" "));
  for (const [name, all] of Object.entries(rows(moment))) draw(name, all);
  by("more").textContent = moment.not_listed > 0 ? `${moment.not_listed} more not listed` : "";
}

function heard(kind, data) {
  if (kind === "live") {
    history.push(totals(data).rate);
    if (history.length > HISTORY) history.shift();
    if (!paused) moment = data;
    by("data").hidden = false;
  } else {
    events.push(data);
    if (events.length > EVENTS) events.shift();
  }
}
function block(lines) {
  const field = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2)).join("\n");
  if (field("data")) heard(field("event"), JSON.parse(field("data")));
}
async function follow(path, signal, begun) {
  const headers = { Accept: "text/event-stream" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { headers, signal, cache: "no-store" });
  if (response.status === 401) throw "token";
  if (!response.ok) throw new Error(`the server responded with the status ${response.status}`);
  begun();
  // The stream begins with all stored events again, possibly of another process.
  if (path === "/v1/events") events.length = 0;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let kept = ""; ;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the server has ended the stream");
    const parts = (kept + value).split("\n\n");
    kept = parts.pop();
    parts.forEach((part) => block(part.split("\n")));
    if (!paused) redraw();
  }
}
// Reads both streams until one of them ends, and then again after a growing pause.
async function run() {
  const own = ++running;
  for (let pause = 1000; own === running; pause = Math.min(pause * 2, BACKOFF_MAX)) {
    const stop = new AbortController();
    try {
      const begun = () => { by("notice").textContent = ""; by("ask").hidden = true; pause = 500; };
      await Promise.race([follow("/v1/live", stop.signal, begun), follow("/v1/events", stop.signal, begun)]);
    } catch (error) {
      if (own !== running) return;
      if (error === "token") { stop.abort(); return ask(); }
      by("notice").textContent = `Not connected: ${error.message}. Retrying; the data below is outdated.`;
    }
    stop.abort();
    await new Promise((wake) => setTimeout(wake, pause));
  }
}
function ask() {
  by("notice").textContent = token ? "The token is wrong." : "This server requires a token.";
  sessionStorage.removeItem(KEY);
  token = null;
  by("ask").hidden = false;
  by("token").focus();
}
by("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = by("token").value.trim();
  by("token").value = "";
  // Other characters are not valid in a header field.
  token = /^[\x21-\x7e]+$/.test(given) ? given : "-";
  sessionStorage.setItem(KEY, token);
  run();
});
by("filter").addEventListener("input", redraw);
by("pause").addEventListener("click", () => {
  paused = !paused;
  by("pause").setAttribute("aria-pressed", String(paused));
  redraw();
});
heads();
run();
