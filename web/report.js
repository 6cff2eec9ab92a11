// What the page gains with scripts: the moment it was made in the reader's own time, and values under the pointer.
// Everything it says stands on the page without it.
"use strict";

for (const time of document.querySelectorAll("time")) {
  const when = new Date(time.dateTime);
  if (!Number.isNaN(when.getTime())) {
    time.title = time.dateTime;
    time.textContent = when.toLocaleString(document.documentElement.lang, { dateStyle: "long", timeStyle: "short" });
  }
}

// The points of a line, read back from its path: [x, y] in thousandths of the plot.
function points(line) {
  return Array.from(line.getAttribute("d").matchAll(/[ML]([\d.]+) ([\d.]+)/g), (m) => [Number(m[1]), Number(m[2])]);
}

function nearest(points, x) {
  return points.reduce((best, p) => (Math.abs(p[0] - x) < Math.abs(best[0] - x) ? p : best));
}

for (const plot of document.querySelectorAll(".panels .plot")) {
  const { x0, x1, y0, y1 } = Object.fromEntries(Object.entries(plot.dataset).map(([k, v]) => [k, Number(v)]));
  const lines = Array.from(plot.querySelectorAll(".line"), (line) => [line.dataset.label, points(line)]).filter(
    ([, found]) => found.length > 0,
  );
  const cursor = document.createElement("div");
  cursor.className = "cursor";
  cursor.hidden = true;
  const readout = cursor.appendChild(document.createElement("div"));
  readout.className = "readout";
  plot.append(cursor);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const digits = y1 >= 100 ? 0 : y1 >= 10 ? 1 : 2;
    const values = lines.map(([label, found]) => {
      const y = y0 + (1 - nearest(found, share * 1000)[1] / 1000) * (y1 - y0);
      return `${y.toFixed(digits)}  ${label}`;
    });
    readout.textContent = [`${(x0 + share * (x1 - x0)).toFixed(1)} s`, ...values].join("\n");
    cursor.style.left = `${share * 100}%`;
    cursor.classList.toggle("flip", share > 0.5);
    cursor.hidden = false;
  });
  plot.addEventListener("pointerleave", () => { cursor.hidden = true; });
}
