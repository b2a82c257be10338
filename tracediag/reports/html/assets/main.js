// Puts the page together: reads the excerpt and joins timeline, findings, table and curves.

function start() {
  const data = unpack(JSON.parse(byId("excerpt").textContent));
  const timeline = new Timeline(data, byId("view"), byId("space"), byId("canvas"));
  const control = new Control(timeline, byId("tip"), byId("chosen"));
  const charts = new Charts(data);
  const steps = [byId("previous"), byId("next")];

  const select = (number) => {
    byId("highlight").value = number === null ? "" : String(number);
    for (const one of document.querySelectorAll(".finding")) one.classList.toggle("selected", one.dataset.finding === String(number));
    for (const button of steps) button.disabled = number === null;
    timeline.highlight(number === null ? null : data.marks[number]);
  };
  const go = () => {
    byId("timeline").scrollIntoView();
    byId("view").focus({ preventScroll: true });
  };
  byId("highlight").addEventListener("change", (event) => select(event.target.value === "" ? null : Number(event.target.value)));
  for (const finding of document.querySelectorAll(".finding")) {
    const number = Number(finding.dataset.finding), mark = data.marks[number];
    if (!mark || !(mark.length || mark.events.size || mark.gaps.size)) continue;
    const button = element("button", "Show in the timeline", { type: "button" });
    button.addEventListener("click", () => {
      select(number);
      go();
    });
    finding.querySelector(".body p").after(element("div", [button], { className: "tools" }));
  }
  const table = { table: byId("ops"), search: byId("search"), found: byId("found"), more: byId("more") };
  new OpTable(data, table, (name) => {
    select(null);
    timeline.highlight(null, name);
    for (const button of steps) button.disabled = false;
    go();
    control.step(false);
  });
  byId("zoom-in").addEventListener("click", () => timeline.zoom(1.6));
  byId("zoom-out").addEventListener("click", () => timeline.zoom(1 / 1.6));
  byId("zoom-fit").addEventListener("click", () => timeline.show(0, data.length));
  steps.forEach((button, i) => button.addEventListener("click", () => control.step(i === 0)));
  byId("save").addEventListener("click", () => save(data));
  followMedia(timeline, charts);
}

/** Draws anew in other colours when the scheme changes; for paper in light ones, with everything unfolded. */
function followMedia(timeline, charts) {
  const recolour = () => {
    timeline.recolour();
    timeline.draw();
    charts.redraw();
  };
  const folded = [];
  const paper = (printing) => {
    document.documentElement.classList.toggle("light", printing);
    if (printing) {
      for (const one of document.querySelectorAll("details.finding:not([open])")) folded.push(one);
    }
    for (const one of folded) one.open = printing;
    if (!printing) folded.length = 0;
    recolour();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
}

start();
