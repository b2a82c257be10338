// Puts the page of a comparison together: two timelines on one scale of time, which move together unless they are told not to.

function start() {
  const sides = ["a", "b"].map((side) => unpack(JSON.parse(byId("excerpt-" + side).textContent)));
  const length = Math.max(...sides.map((data) => data.length));
  const panels = ["a-", "b-"].map((prefix, i) => new Panel({ ...sides[i], length }, prefix));
  const together = byId("together");
  panels.forEach(({ timeline }, i) => {
    const other = panels[1 - i].timeline;
    timeline.onshow = (from, to) => together.checked && other.follow(from, to);
  });
  together.addEventListener("change", () => panels[0].timeline.show(panels[0].timeline.from, panels[0].timeline.to));
  followMedia(panels.map((panel) => panel.timeline));
}

start();
