// Appended to a page with pictures: says in #result how many texts they show, and which of them overlap. In a report it also zooms the
// timeline, searches and sorts, and says whether that had an effect.
(() => {
  const said = [];
  const boxes = when => {
    const all = [...document.querySelectorAll("svg text")].map(text => ({text: text.textContent, box: text.getBoundingClientRect()}))
      .filter(one => one.box.width > 0 && one.text !== "");
    all.sort((a, b) => a.box.top - b.box.top);
    for (let i = 0; i < all.length; ++i)
      for (let j = i + 1; j < all.length && all[j].box.top < all[i].box.bottom - 2; ++j) {
        const a = all[i].box, b = all[j].box;
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1) said.push(`overlap ${when}: "${all[i].text}" and "${all[j].text}"`);
      }
    for (const svg of document.querySelectorAll("svg")) {
      const frame = svg.getBoundingClientRect();
      for (const text of svg.querySelectorAll("text")) {
        const box = text.getBoundingClientRect();
        if (box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1))
          said.push(`outside ${when}: "${text.textContent}"`);
      }
    }
    return all.length;
  };
  const count = boxes("at first");
  const timeline = document.getElementById("timeline");
  if (timeline) {
    const shown = () => [...timeline.querySelectorAll(".span")].filter(span => span.style.display !== "none").length;
    const labels = () => [...timeline.querySelectorAll(".span")].map(span => span.querySelector("text")?.textContent ?? "").join("|");
    const labelled = labels(), before = shown(), axis = document.getElementById("timeline-axis").textContent;
    for (let i = 0; i < 4; ++i) document.getElementById("closer").click();
    boxes("zoomed");
    for (const span of timeline.querySelectorAll(".span")) {
      const name = span.dataset.name, label = span.querySelector("text")?.textContent ?? "";
      const parts = name.endsWith(label) && (label === name || "./:".includes(label[0] ?? "."));
      if (!parts && !(label.endsWith("...") && name.startsWith(label.slice(0, -3)))) said.push(`"${name}" is called "${label}" when zoomed`);
    }
    if ((before > 3 && shown() >= before) || document.getElementById("timeline-axis").textContent === axis) said.push("zooming has no effect");
    document.getElementById("whole").click();
    if (shown() !== before) said.push("the whole is not shown again");
    if (labels() !== labelled) said.push("the whole has other labels than at first");
    boxes("whole again");
    const search = document.getElementById("search"), rows = [...document.querySelectorAll("#steps tbody tr")];
    search.value = rows[0].cells[1].textContent;
    search.dispatchEvent(new Event("input"));
    if (rows[0].hidden || (rows.length > 1 && rows.every(row => !row.hidden))) said.push("searching has no effect");
    search.value = "";
    search.dispatchEvent(new Event("input"));
    const head = document.querySelectorAll("#steps th")[7];
    head.click();
    const times = [...document.querySelectorAll("#steps tbody tr")].map(row => +(row.cells[7].dataset.v ?? -1));
    if (times.some((time, i) => i > 0 && times[i - 1] < time)) said.push("sorting by time has no effect");
  }
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = said.length ? said.slice(0, 20).join("\n") : `pictures: ${count} texts, none overlaps`;
  document.body.append(result);
})();
