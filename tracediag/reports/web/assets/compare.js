// Puts the page of a comparison together: two timelines on one scale of time, which move together unless they are told not to.

function start() {
  const sides = ["a", "b"].map((side) => unpack(JSON.parse(byId("excerpt-" + side).textContent)));
  const length = Math.max(...sides.map((data) => data.length));
  const panels = ["a-", "b-"].map((prefix, i) => new Panel({ ...sides[i], length }, prefix));
  for (const { control } of panels) control.onescape = () => panels.forEach((panel) => panel.highlight(null));
  const together = byId("together");
  panels.forEach(({ timeline }, i) => {
    const other = panels[1 - i].timeline;
    timeline.onshow = (from, to) => together.checked && other.follow(from, to);
  });
  together.addEventListener("change", () => panels[0].timeline.show(panels[0].timeline.from, panels[0].timeline.to));
  for (const part of document.querySelectorAll(".part")) {
    const named = panels.map(({ data }, i) => indexesOf(data, JSON.parse(part.dataset[i ? "b" : "a"])));
    if (!named.some((names) => names.size)) continue;
    const button = element("button", "Show in the timelines", { type: "button" });
    button.addEventListener("click", () => {
      panels.forEach((panel, i) => panel.highlight(null, named[i]));
      panels[0].go();
    });
    part.querySelector(".body").prepend(element("div", [button], { className: "tools" }));
  }
  followMedia(panels.map((panel) => panel.timeline));
}

/** Where the strings of an excerpt name one of some operations. */
function indexesOf(data, names) {
  const wanted = new Set(names), shown = new Set(data.events.name);
  return new Set([...shown].filter((i) => wanted.has(data.raw.strings[i])));
}

start();
