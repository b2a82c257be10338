// Puts the page of a report together: reads the excerpt and joins timeline, findings, table and curves.

function start() {
  const data = unpack(JSON.parse(byId("excerpt").textContent));
  const panel = new Panel(data), charts = new Charts(data);
  const select = (number) => {
    if (byId("highlight")) byId("highlight").value = number === null ? "" : String(number);
    for (const one of document.querySelectorAll(".finding")) one.classList.toggle("selected", one.dataset.finding === String(number));
    panel.highlight(number === null ? null : data.marks[number]);
  };
  panel.control.onescape = () => select(null);
  byId("highlight")?.addEventListener("change", (event) => select(event.target.value === "" ? null : Number(event.target.value)));
  for (const finding of document.querySelectorAll(".finding")) {
    const number = Number(finding.dataset.finding), mark = data.marks[number];
    if (!mark || !(mark.length || mark.events.size || mark.gaps.size)) continue;
    const button = element("button", "Show in the timeline", { type: "button" });
    button.addEventListener("click", () => {
      select(number);
      panel.go();
    });
    finding.querySelector(".body p").after(element("div", [button], { className: "tools" }));
  }
  new OpTable(data, { table: byId("ops"), search: byId("search"), found: byId("found"), more: byId("more") }, (name) => {
    select(null);
    panel.highlight(null, new Set([name]));
    panel.go();
    panel.control.step(false);
  });
  followMedia([panel.timeline, charts]);
}

start();
