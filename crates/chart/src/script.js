// Values under the pointer. The page reads well without it.
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
  for (const chart of document.querySelectorAll("svg[data-hover]")) {
    const entries = JSON.parse(chart.dataset.hover || "[]");
    const cursor = chart.querySelector(".cursor");
    if (!entries.length || !cursor) continue;
    const hide = () => {
      tip.hidden = true;
      chart.classList.remove("on");
    };
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const [place, head, rows] = entries.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
      chart.classList.add("on");
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      const title = document.createElement("b");
      title.textContent = head;
      tip.replaceChildren(title, ...rows.map(row));
      tip.hidden = false;
      const left = event.clientX + 16 + tip.offsetWidth > innerWidth ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16;
      tip.style.left = Math.max(6, left) + "px";
      tip.style.top = Math.max(6, event.clientY - tip.offsetHeight - 12) + "px";
    });
    chart.addEventListener("pointerleave", hide);
    chart.addEventListener("pointercancel", hide);
  }
})();
