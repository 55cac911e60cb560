// Values under the pointer, or where the keyboard is. The page reads well without it.
(() => {
  const tip = document.getElementById("tip");
  const text = (value) => Object.assign(document.createElement("span"), { textContent: value });
  const row = ([name, colour, value]) => {
    const line = document.createElement("div");
    const label = text(name);
    label.prepend(Object.assign(document.createElement("i"), { className: colour }));
    const number = document.createElement("b");
    number.textContent = value;
    line.append(label, number);
    return line;
  };
  // Read when it is asked for: a page may have megabytes of them.
  const known = new WeakMap();
  const entriesOf = (chart) => {
    if (!known.has(chart)) known.set(chart, JSON.parse(chart.dataset.hover || "[]"));
    return known.get(chart);
  };
  const hide = (chart) => {
    tip.hidden = true;
    chart.classList.remove("on");
  };
  const show = (chart, index, x, y) => {
    const [place, head, rows] = entriesOf(chart)[index];
    const cursor = chart.querySelector(".cursor");
    chart.classList.add("on");
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    const title = document.createElement("b");
    title.textContent = head;
    tip.replaceChildren(title, ...rows.map(row));
    tip.hidden = false;
    const left = x + 16 + tip.offsetWidth > innerWidth ? x - 16 - tip.offsetWidth : x + 16;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = Math.max(6, Math.min(y - tip.offsetHeight - 12, innerHeight - tip.offsetHeight - 6)) + "px";
  };
  const scale = (chart) => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
  // Beside the value, as if the pointer were there.
  const showAt = (chart, index) => {
    const box = chart.getBoundingClientRect();
    show(chart, index, box.left + entriesOf(chart)[index][0] * scale(chart), box.top + box.height / 2);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  for (const chart of document.querySelectorAll("svg[data-hover]")) {
    let at = 0;
    chart.addEventListener("pointermove", (event) => {
      const entries = entriesOf(chart);
      if (!entries.length) return;
      const place = (event.clientX - chart.getBoundingClientRect().left) / scale(chart);
      const distance = (index) => Math.abs(entries[index][0] - place);
      at = entries.reduce((best, _, index) => (distance(index) < distance(best) ? index : best), 0);
      show(chart, at, event.clientX, event.clientY);
    });
    chart.addEventListener("pointerleave", () => hide(chart));
    chart.addEventListener("pointercancel", () => hide(chart));
    chart.addEventListener("focus", () => {
      if (entriesOf(chart).length && chart.matches(":focus-visible")) showAt(chart, at);
    });
    chart.addEventListener("blur", () => hide(chart));
    chart.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide(chart);
      const last = entriesOf(chart).length - 1;
      if (!(event.key in steps) || last < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      at = Math.max(0, Math.min(last, tip.hidden ? at : at + steps[event.key]));
      showAt(chart, at);
    });
  }
  // On paper nothing can be opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
})();
