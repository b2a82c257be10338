// The table of operations: sorted by any column, searched by name and kind.

const FEW = 25;

class OpTable {
  /** choose: called with the index of a name in the strings when one is chosen. */
  constructor(data, { table, search, found, more }, choose) {
    Object.assign(this, { data, table, search, found, more, choose, all: false, key: "self", down: true });
    const { ops } = data.raw, text = (i) => (i >= 0 ? data.text[i] : "");
    this.rows = ops.name.map((name, i) => ({
      id: name, name: text(name), kind: text(ops.kind[i]).replaceAll("_", " "), place: text(ops.place[i]), count: ops.count[i] / ops.steps,
      self: ops.self[i] / ops.steps, dur: ops.dur[i] / ops.steps, device: ops.device[i] / ops.steps,
    }));
    const device = ops.device.some((ns) => ns > 0);
    this.columns = [
      ["name", "Operation"], ["self", "Own time", duration], ["dur", "Time", duration],
      ...(device ? [["device", "Device time", (ns) => (ns ? duration(ns) : "")]] : []), ["count", data.steps.length ? "A step" : "Count", digits],
      ["kind", "Kind"], ["place", "Where"],
    ];
    this.table.tHead.append(element("tr", this.columns.map((column) => this.head(column))));
    search.addEventListener("input", () => this.fill());
    more.addEventListener("click", () => {
      this.all = !this.all;
      this.fill();
    });
    this.fill();
  }

  head([key, title, number]) {
    const button = element("button", title, { type: "button" });
    button.addEventListener("click", () => {
      this.down = this.key === key ? !this.down : Boolean(number);
      this.key = key;
      this.fill();
    });
    const cell = element("th", [button], { scope: "col", className: number ? "n" : "" });
    cell.dataset.key = key;
    return cell;
  }

  fill() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.rows.filter((row) => words.every((word) => `${row.name} ${row.kind} ${row.place}`.toLowerCase().includes(word)));
    const sign = this.down ? -1 : 1, { key } = this;
    rows.sort((a, b) => sign * (typeof a[key] === "string" ? a[key].localeCompare(b[key]) : a[key] - b[key]));
    const shown = this.all ? rows : rows.slice(0, FEW);
    this.table.tBodies[0].replaceChildren(...shown.map((row) => this.line(row)));
    for (const cell of this.table.tHead.rows[0].cells) {
      if (cell.dataset.key === key) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.found.textContent = words.length ? `${rows.length} of ${this.rows.length}` : "";
    this.more.hidden = rows.length <= FEW;
    this.more.textContent = this.all ? `Show the first ${FEW}` : `Show all ${rows.length}`;
  }

  line(row) {
    const cells = this.columns.map(([key, , number]) => {
      if (key !== "name") return element("td", number ? number(row[key]) : row[key], { className: number ? "n" : "" });
      const button = element("button", [element("code", row.name)], { type: "button", title: `Highlight in the timeline: ${row.name}` });
      button.addEventListener("click", () => this.choose(row.id));
      return element("td", [button]);
    });
    return element("tr", cells);
  }
}
