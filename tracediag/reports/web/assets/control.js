// Mouse, fingers and keys on the timeline, the box that tells what lies under the pointer, and the facts of the chosen event.

class Control {
  constructor(timeline, tip, panel) {
    Object.assign(this, { timeline, tip, panel, pointers: new Map(), moved: false });
    const { view } = timeline;
    view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    view.addEventListener("pointerdown", (event) => this.down(event));
    view.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) view.addEventListener(kind, (event) => this.up(event));
    view.addEventListener("pointerleave", () => (this.tip.hidden = true));
    view.addEventListener("dblclick", (event) => this.closer(event));
    view.addEventListener("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.timeline.view.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  wheel(event) {
    const { timeline } = this, [x] = this.place(event);
    if (event.ctrlKey || event.metaKey) timeline.zoom(Math.exp(-event.deltaY / 250), timeline.time(x));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan((event.deltaX || event.deltaY) / timeline.width);
    else return; // the wheel alone scrolls as everywhere
    event.preventDefault();
    this.tip.hidden = true;
  }

  down(event) {
    if (event.button > 0) return;
    this.pointers.set(event.pointerId, this.place(event));
    this.moved = this.pointers.size > 1;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId), [x, y] = this.place(event);
    if (!before) return this.hover(event, x, y);
    const { timeline } = this;
    if (!this.moved && Math.hypot(x - before[0], y - before[1]) < 4) return;
    this.moved = true;
    this.tip.hidden = true;
    timeline.view.classList.add("dragging");
    timeline.view.setPointerCapture(event.pointerId);
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const factor = Math.abs(x - other[0]) / Math.max(Math.abs(before[0] - other[0]), 1);
      timeline.zoom(Math.min(Math.max(factor, 0.2), 5), timeline.time((x + other[0]) / 2));
    } else {
      timeline.pan((before[0] - x) / timeline.width);
      if (event.pointerType === "mouse") timeline.view.scrollTop += before[1] - y;
    }
    this.pointers.set(event.pointerId, [x, y]);
  }

  up(event) {
    const known = this.pointers.delete(event.pointerId);
    this.timeline.view.classList.remove("dragging");
    if (known && !this.moved && event.type === "pointerup") this.choose(this.timeline.at(...this.place(event)));
  }

  hover(event, x, y) {
    const found = event.pointerType === "mouse" ? this.timeline.at(x, y) : null;
    this.tip.hidden = !found;
    if (!found) return;
    const { boxes } = found.row;
    const facts = this.facts(boxes, found.index).filter(([name]) => ["Time", "Own time", "Phase", "Shapes"].includes(name));
    this.tip.replaceChildren(
      element("b", nameOf(this.timeline.data, boxes, found.index)), ...facts.map(([name, value]) => element("div", `${name}: ${value}`)),
    );
    const { width, height } = this.tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8), top = event.clientY + 18;
    this.tip.style.transform = `translate(${Math.max(left, 4)}px, ${top + height > innerHeight ? event.clientY - height - 10 : top}px)`;
  }

  closer(event) {
    const found = this.timeline.at(...this.place(event));
    if (found) this.timeline.reveal(found, true);
    else this.timeline.zoom(2, this.timeline.time(this.place(event)[0]));
  }

  choose(found) {
    this.timeline.chosen = found;
    this.timeline.redraw();
    if (!found) {
      this.panel.replaceChildren(element("span", "Choose an event to see what it is.", { className: "muted" }));
      return;
    }
    const { boxes } = found.row;
    const list = this.facts(boxes, found.index).flatMap(([name, value]) => [element("dt", name), element("dd", value)]);
    this.panel.replaceChildren(element("b", nameOf(this.timeline.data, boxes, found.index)), element("dl", list));
  }

  /** [name, value] of what is known of a box. */
  facts(boxes, i) {
    const { data } = this.timeline, text = (column) => (boxes[column][i] >= 0 ? data.text[boxes[column][i]] : "");
    const facts = [["Time", duration(boxes.dur[i])], ["Begins at", duration(boxes.start[i])]];
    if (boxes.what === "gap" && boxes.op[i] >= 0) facts.push(["Host is in", data.text[data.events.name[boxes.op[i]]]]);
    if (boxes.what !== "event") return facts;
    const lane = data.lanes[boxes.lane[i]], launch = boxes.launch[i];
    if (boxes.self[i] !== boxes.dur[i]) facts.push(["Own time", duration(boxes.self[i])]);
    facts.push(["Phase", text("phase") && phaseOf(data, boxes, i)], ["Kind", text("kind").replaceAll("_", " ")], ["Label", text("label")]);
    facts.push(["Shapes", text("in") && shapes(text("in"))], ["Result", text("out") && shapes(text("out"))]);
    if (boxes.bytes[i] >= 0) facts.push(["Bytes", bytes(boxes.bytes[i])]);
    if (launch >= 0) facts.push(["Launched by", `${data.text[data.events.name[launch]]}, ${duration(boxes.start[i] - data.events.start[launch])} before`]);
    facts.push(["Line", text("source")], ["Where", laneName(lane)]);
    return facts.filter(([, value]) => value);
  }

  /** The next event in order of time, of the highlighted ones where there are some; back: the one before. */
  step(back) {
    const { timeline } = this, { data } = timeline;
    const some = timeline.mark !== null || timeline.names !== null;
    const wanted = timeline.rows.flatMap((row) => row.at.map((index) => ({ row, index, at: row.boxes.start[index] })))
      .filter(({ row, index }) => (some ? timeline.isLoud(row.boxes, index) : row.boxes === data.events))
      .sort((a, b) => a.at - b.at || a.row.y - b.row.y);
    if (!wanted.length) return;
    const { chosen } = timeline;
    const here = chosen ? wanted.findIndex(({ row, index }) => row.boxes === chosen.row.boxes && index === chosen.index) : -1;
    const place = here >= 0 ? here + (back ? -1 : 1) : back ? wanted.length - 1 : wanted.findIndex(({ at }) => at >= timeline.from);
    const found = wanted[(Math.max(place, here >= 0 ? place : 0) + wanted.length) % wanted.length];
    this.choose(found);
    timeline.reveal(found);
  }

  key(event) {
    const { timeline } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => timeline.pan(-0.15),
      ArrowRight: () => timeline.pan(0.15),
      "+": () => timeline.zoom(1.6),
      "=": () => timeline.zoom(1.6),
      "-": () => timeline.zoom(1 / 1.6),
      0: () => timeline.show(0, timeline.data.length),
      ".": () => this.step(false),
      ",": () => this.step(true),
      Enter: () => timeline.chosen && timeline.reveal(timeline.chosen, true),
      Escape: () => {
        this.choose(null);
        this.onescape?.();
      },
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }
}
