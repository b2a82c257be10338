// Steps and memory over time, drawn by uPlot in the colours of the page.

const WHOLE = Array.from({ length: 8 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat(); // between steps there are no others
const time = (ns) => (ns ? duration(ns) : "0");

class Charts {
  constructor(data) {
    this.made = [];
    if (byId("steps-chart")) this.steps(data.raw.series, byId("steps-chart"));
    for (const memory of data.raw.memory) this.memory(memory, data.raw.window);
    addEventListener("resize", onceAFrame(() => this.fit()));
  }

  add(place, options, columns) {
    const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false } };
    const axes = [{ ...axis, ...options.axes[0] }, { ...axis, size: 76, ...options.axes[1] }];
    this.made.push([new uPlot({ ...options, axes, width: place.clientWidth, height: 230, cursor: { y: false } }, columns, place), place]);
  }

  steps(series, place) {
    const of = (profiled) => series.wall.map((ns, i) => (series.profiled[i] === profiled ? ns : null));
    const few = series.step.length < 200;
    const line = (label, name) => ({
      label, value: (_, ns) => (ns == null ? "–" : duration(ns)), stroke: () => colour(name), width: 1.5, spanGaps: false,
      points: { show: few, size: 5, fill: () => colour(name) },
    });
    const plain = series.profiled.includes(0), traced = series.profiled.includes(1);
    const lines = [...(plain ? [[line("without the profiler", "link"), of(0)]] : []), ...(traced ? [[line("with the profiler", "medium"), of(1)]] : [])];
    this.add(place, {
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, (high || 1) * 1.05] } },
      axes: [{ incrs: WHOLE, values: (_, marks) => marks.map(String) }, { values: (_, marks) => marks.map(time) }],
      series: [{ label: "step", value: (_, step) => step ?? "–" }, ...lines.map(([one]) => one)],
    }, [series.step, ...lines.map(([, column]) => column)]);
    const longest = series.wall.reduce((best, ns, i) => (ns > series.wall[best] ? i : best), 0);
    label(place, `${series.of} steps; the longest is step ${series.step[longest]} with ${duration(series.wall[longest])}.`);
  }

  memory(memory, frame) {
    const place = element("div", [], { className: "chart" });
    byId("memory-charts").append(place);
    const name = memory.name === null ? "" : " of " + clean(memory.name);
    place.append(element("h3", `Memory${name}${memory.counted ? ", counted from the first allocation recorded" : ""}`));
    const line = (text, shade, fill) => ({
      label: text, value: (_, count) => (count == null ? "–" : bytes(count)), stroke: () => colour(shade), width: 1.5, points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }), ...fill,
    });
    const held = memory.reserved ? [memory.reserved] : [];
    this.add(place, {
      scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(low, 0), (high || 1) * 1.05] } },
      axes: [{ values: (_, marks) => marks.map(time) }, { values: (_, marks) => marks.map((count) => (count ? bytes(count) : "0")) }],
      series: [{ label: "time", value: (_, ns) => (ns == null ? "–" : duration(ns)) }, line("in use", "link"), ...held.map(() => line("reserved", "muted", { dash: [5, 4] }))],
      hooks: { drawClear: [(plot) => shade(plot, frame)] },
    }, [memory.time, memory.allocated, ...held]);
    label(place, `At most ${bytes(memory.allocated.reduce((a, b) => Math.max(a, b), 0))} in use.`);
  }

  fit() {
    for (const [plot, place] of this.made) plot.setSize({ width: place.clientWidth, height: 230 });
  }

  recolour() {
    for (const [plot] of this.made) plot.redraw();
  }
}

/** The stretch that the timeline shows, shaded. */
function shade(plot, frame) {
  const left = plot.valToPos(frame.start_ns, "x", true), right = plot.valToPos(frame.start_ns + frame.length_ns, "x", true);
  const from = Math.max(left, plot.bbox.left), to = Math.min(right, plot.bbox.left + plot.bbox.width);
  if (to <= from || to - from >= plot.bbox.width - 2) return;
  plot.ctx.fillStyle = colour("panel");
  plot.ctx.fillRect(from, plot.bbox.top, to - from, plot.bbox.height);
}

/** What the curve says, in words, for those who do not see it and those who do. */
function label(place, words) {
  place.querySelector("h3").after(element("p", words, { className: "note" }));
  place.querySelector(".u-wrap").setAttribute("aria-hidden", "true");
}
