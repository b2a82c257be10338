// A timeline with its buttons, its tip and the facts of the chosen event: all that belongs to one excerpt on the page.

class Panel {
  /** prefix: of the ids of its elements. */
  constructor(data, prefix = "") {
    this.part = (name) => byId(prefix + name);
    this.data = data;
    this.timeline = new Timeline(data, this.part("view"), this.part("space"), this.part("canvas"));
    this.control = new Control(this.timeline, this.part("tip"), this.part("chosen"));
    this.steps = [this.part("previous"), this.part("next")];
    this.part("zoom-in").addEventListener("click", () => this.timeline.zoom(1.6));
    this.part("zoom-out").addEventListener("click", () => this.timeline.zoom(1 / 1.6));
    this.part("zoom-fit").addEventListener("click", () => this.timeline.show(0, data.length));
    this.part("save").addEventListener("click", () => save(data));
    this.steps.forEach((button, i) => button.addEventListener("click", () => this.control.step(i === 0)));
  }

  /** Highlights a finding (its Boxes) or names (a Set of indexes of strings); null for none. */
  highlight(mark, names = null) {
    this.timeline.highlight(mark, names);
    for (const button of this.steps) button.disabled = mark === null && names === null;
  }

  /** Brings the timeline to the reader, for the eyes and for the keys. */
  go() {
    this.part("view").closest("section").scrollIntoView();
    this.part("view").focus({ preventScroll: true });
  }
}

/** Draws anew in other colours when the scheme changes; for paper in light ones, with everything unfolded. drawings: have `recolour`. */
function followMedia(drawings) {
  const recolour = () => drawings.forEach((one) => one.recolour());
  let unfolded = [];
  const paper = (printing) => {
    document.documentElement.classList.toggle("light", printing);
    if (printing) unfolded = [...document.querySelectorAll("details.finding:not([open])")];
    for (const one of unfolded) one.open = printing;
    recolour();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
}
