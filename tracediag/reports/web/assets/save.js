// The excerpt as a trace in the Chrome format, which Perfetto and chrome://tracing open.

const CATEGORIES = {
  op: "cpu_op", annotation: "user_annotation", python: "python_function", runtime: "cuda_runtime", copy: "gpu_memcpy", memset: "gpu_memset",
  device_annotation: "gpu_user_annotation", device_sync: "cuda_sync",
};

function traceEvents(data) {
  const { raw, events } = data, zero = raw.window.start_ns, written = [];
  const text = (i) => (i >= 0 ? raw.strings[i] : undefined);
  const list = (i) => {
    try {
      return JSON.parse(text(i));
    } catch {
      return undefined; // cut because it is long
    }
  };
  const places = raw.lanes.map((lane, i) => place(lane, i));
  raw.lanes.forEach((lane, i) => {
    const names = { process_name: lane.device ?? "host", thread_name: lane.name };
    for (const [name, value] of Object.entries(names)) written.push({ ph: "M", name, ...places[i], args: { name: value } });
  });
  const launches = new Set(events.launch.filter((launch) => launch >= 0));
  for (let i = 0; i < events.length; i++) {
    const role = text(events.role[i]), launch = events.launch[i];
    const args = {
      "Input Dims": list(events.in[i]), kind: text(events.kind[i]), phase: text(events.phase[i]), label: text(events.label[i]),
      source: text(events.source[i]), correlation: launch >= 0 ? launch + 1 : launches.has(i) ? i + 1 : undefined,
    };
    const span = { ts: (zero + events.start[i]) / 1000, dur: events.dur[i] / 1000 };
    written.push({ ph: "X", cat: CATEGORIES[role] ?? role, name: text(events.name[i]), ...places[events.lane[i]], ...span, args });
    if (launch < 0) continue;
    const flow = { cat: "ac2g", name: "ac2g", id: i + 1 };
    written.push({ ph: "s", ...flow, ...places[events.lane[launch]], ts: (zero + events.start[launch]) / 1000 });
    written.push({ ph: "f", bp: "e", ...flow, ...places[events.lane[i]], ts: span.ts });
  }
  return [...written, ...overlays(data, zero)];
}

/** Process and thread of a lane: the numbers of the trace where it has some. */
function place(lane, i) {
  const host = /^(\d+)\/(\d+)$/.exec(lane.name), stream = /^gpu (\d+) stream (\d+)$/.exec(lane.name);
  if (lane.device === null && host) return { pid: Number(host[1]), tid: Number(host[2]) };
  return stream ? { pid: Number(stream[1]), tid: Number(stream[2]) } : { pid: lane.device ?? "host", tid: i };
}

/** Steps, phases, idle time and the time of each finding as lanes of their own, in a category that tracediag passes over when it reads it. */
function overlays(data, zero) {
  const titles = [...document.querySelectorAll(".finding h3")].map((title) => title.textContent);
  const lanes = [["steps", data.steps], ["phases", data.phases], ["idle", data.gaps], ...data.marks.map((mark, i) => [`${i + 1} ${titles[i]}`, mark])];
  return lanes.flatMap(([tid, boxes]) =>
    boxes.start.map((start, i) => ({
      ph: "X", cat: "tracediag_finding", pid: "tracediag findings", tid, name: boxes.what === "mark" ? tid : nameOf(data, boxes, i),
      ts: (zero + start) / 1000, dur: boxes.dur[i] / 1000,
    })),
  );
}

function save(data) {
  const text = JSON.stringify({ schemaVersion: 1, traceEvents: traceEvents(data) });
  const link = element("a", [], { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: "excerpt.trace.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
