#include "commands/run/report_page.h"

namespace heddle::tool {

const char* const report_style = R"css(
body{font:14px sans-serif;margin:2em;max-width:1240px;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:.5em 0}td,th{border-bottom:1px solid #ccc;padding:2px 8px;text-align:left;vertical-align:top}
table.sorted th{cursor:pointer;white-space:nowrap}th.up::after{content:" \25b2"}th.down::after{content:" \25bc"}
td.n{text-align:right;white-space:nowrap}p.bar{margin:.3em 0}svg:not([width]){width:100%;height:auto}
button,input{font:inherit;padding:1px 8px}.dim{opacity:.15}.wide{overflow-x:auto}
#timeline{touch-action:none;user-select:none}.net{overflow:auto;max-height:85vh}
@media screen and (prefers-color-scheme:dark){body{color:#e8e8e8;background:#16181d}td,th{border-color:#44474f}}
@media print{p.bar{display:none}.net{max-height:none}}
)css";

const char* const report_script = R"js(
"use strict";
(() => {
  const svg = document.getElementById("timeline"), all = document.querySelectorAll("table.sorted");
  for (const table of all)
    table.tHead.addEventListener("click", event => {
      const head = event.target.closest("th");
      if (!head) return;
      const down = !head.classList.contains("down"), column = head.cellIndex;
      for (const other of table.tHead.rows[0].cells) other.className = "";
      head.className = down ? "down" : "up";
      const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = key(a), y = key(b), order = isNaN(x) || isNaN(y) || x === "" || y === "" ? x.localeCompare(y) : x - y;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  const search = document.getElementById("search");
  search?.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const row of document.querySelectorAll("#steps tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    for (const span of document.querySelectorAll("#timeline .span"))
      span.classList.toggle("dim", !span.textContent.toLowerCase().includes(wanted));
  });
  const net = document.getElementById("net"), view = net?.parentElement;
  const first = [...net?.querySelectorAll("rect.outlined") ?? []].find(box => box.getAttribute("width") > 20);  // not of the legend
  if (first) {
    const natural = net.viewBox.baseVal.width;
    let size = 1;
    const show = (factor, x, y) => {  // x, y: the place of the net that comes to the middle, at the top
      size = Math.min(4, Math.max(Math.min(1, view.clientWidth / natural) / 2, factor));
      net.style.maxWidth = "none";
      net.style.width = size * natural + "px";
      view.scrollLeft = x * size - view.clientWidth / 2;
      view.scrollTop = y * size;
    };
    const middle = () => [(view.scrollLeft + view.clientWidth / 2) / size, view.scrollTop / size];
    const whole = () => show(Math.min(1, view.clientWidth / natural), 0, 0);
    if (view.clientWidth / natural < 0.6)
      show(1, +first.getAttribute("x") + first.getAttribute("width") / 2, first.getAttribute("y") - 60);
    else
      whole();
    document.getElementById("net-closer").addEventListener("click", () => show(size * 1.4, ...middle()));
    document.getElementById("net-farther").addEventListener("click", () => show(size / 1.4, ...middle()));
    document.getElementById("net-whole").addEventListener("click", whole);
  }
  if (!svg || !svg.querySelector("rect.wait")) return;
  const frame = svg.querySelector("rect.wait"), left = +frame.getAttribute("x"), width = +frame.getAttribute("width");
  const axis = document.getElementById("timeline-axis"), end = +axis.dataset.end, unit = axis.lastElementChild.textContent;
  const bottom = +axis.querySelector("line").getAttribute("y1");
  const make = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const spans = [...svg.querySelectorAll(".span")].map(group => {
    const box = group.querySelector("rect");
    const text = group.querySelector("text");
    return {group, box, x: +box.getAttribute("x"), width: +box.getAttribute("width"), name: group.dataset.name, text, label: text?.textContent ?? ""};
  });
  // The last parts of a name that have room, as fitting_name() finds them.
  const fitting = (name, room) => {
    if (name.length <= room) return name;
    for (let at = name.search(/[.\/:]/); at >= 0;) {
      if (at + 3 < name.length && name.length - at <= room) return name.slice(at);
      const next = name.slice(at + 1).search(/[.\/:]/);
      at = next < 0 ? -1 : at + 1 + next;
    }
    return room >= 8 ? name.slice(0, room - 3) + "..." : "";
  };
  let from = 0, zoom = 1;  // the first part of the whole that is shown, and how many times it is as wide
  const draw = () => {
    for (const span of spans) {
      const x = left + ((span.x - left) / width - from) * zoom * width, begin = Math.max(left, x);
      const shown = Math.min(left + width, x + span.width * zoom) - begin;
      span.group.style.display = shown > 0 ? "" : "none";
      if (shown <= 0) continue;
      span.box.setAttribute("x", begin);
      span.box.setAttribute("width", shown);
      span.box.classList.toggle("box", shown > 2);
      const text = zoom === 1 ? span.label : fitting(span.name, Math.floor((shown - 4) / 6.1));
      if (text && !span.text)
        span.text = span.group.appendChild(make("text", {y: +span.box.getAttribute("y") + 14.5, "text-anchor": "middle", class: "on small"}));
      if (!span.text) continue;
      span.text.textContent = text;
      span.text.setAttribute("x", begin + shown / 2);
    }
    axis.replaceChildren(make("line", {x1: left, x2: left + width, y1: bottom, y2: bottom, class: "axis"}));
    const range = end / zoom, power = 10 ** Math.floor(Math.log10(range / 10)), first = from * end;
    const step = power * [1, 2, 5, 10].find(factor => factor * power * 10 >= range);
    for (let value = Math.ceil(first / step) * step; value <= first + range; value += step) {
      const at = left + (value - first) / range * width, text = value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
      if (at > left + width - 40) continue;
      axis.append(make("line", {x1: at, x2: at, y1: bottom, y2: bottom + 4, class: "axis"}));
      axis.append(make("text", {x: at, y: bottom + 17, "text-anchor": "middle"}, text));
    }
    axis.append(make("text", {x: left + width, y: bottom + 17, "text-anchor": "end"}, unit));
  };
  const place = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    return Math.min(1, Math.max(0, ((event.clientX - box.left) * scale - left) / width));
  };
  const zoom_by = (factor, at) => {
    const kept = from + at / zoom;
    zoom = Math.min(1e6, Math.max(1, zoom * factor));
    from = Math.min(1 - 1 / zoom, Math.max(0, kept - at / zoom));
    draw();
  };
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    zoom_by(event.deltaY < 0 ? 1.3 : 1 / 1.3, place(event));
  }, {passive: false});
  let held = null;
  svg.addEventListener("pointerdown", event => { held = {at: place(event), from}; svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointermove", event => {
    if (!held) return;
    from = Math.min(1 - 1 / zoom, Math.max(0, held.from - (place(event) - held.at) / zoom));
    draw();
  });
  svg.addEventListener("pointerup", () => held = null);
  for (const [id, factor] of [["closer", 2], ["farther", 0.5], ["whole", 1e-9]])
    document.getElementById(id).addEventListener("click", () => zoom_by(factor, 0.5));
})();
)js";

}  // namespace heddle::tool
