// The rows of the timeline: steps, phases, the time that a finding owns, devices with their idle time, threads. Each row holds boxes that do
// not overlap, in order of time, so that what lies under a point is found by halving.

const ROW = 17;
const HEAD = 18; // the name of a track
const SPACE = 9;
const RULER = 24;

/** Columns of the excerpt as boxes: start, dur, and what they are. */
class Boxes {
  constructor(what, columns) {
    this.what = what; // step | phase | mark | gap | event
    Object.assign(this, columns);
  }

  get length() {
    return this.start.length;
  }
}

/** The excerpt with starts summed up, empty columns filled and strings cleaned for showing. */
function unpack(raw) {
  const count = raw.events.lane.length;
  const events = {};
  for (const [name, column] of Object.entries(raw.events)) events[name] = column ?? new Array(count).fill(-1);
  let at = 0;
  events.start = events.start.map((step) => (at += step));
  const steps = { start: raw.steps.map((s) => s.start), dur: raw.steps.map((s) => s.dur), number: raw.steps.map((s) => s.number) };
  return {
    raw,
    length: raw.window.length_ns,
    text: raw.strings.map(clean),
    lanes: raw.lanes.map((lane) => ({ ...lane, name: clean(lane.name), device: lane.device && clean(lane.device) })),
    events: new Boxes("event", events),
    steps: new Boxes("step", steps),
    phases: new Boxes("phase", raw.phases),
    gaps: new Boxes("gap", { ...raw.gaps, tracks: raw.gaps.tracks.map(clean) }),
    marks: raw.marks.map(({ start, dur, events, gaps }) => new Boxes("mark", { start, dur, events: runs(events), gaps: runs(gaps) })),
  };
}

/** The set of numbers in runs: first and length of each, one behind the other. */
function runs(pairs) {
  const all = new Set();
  for (let at = 0; at < pairs.length; at += 2) {
    for (let i = 0; i < pairs[at + 1]; i++) all.add(pairs[at] + i);
  }
  return all;
}

/** All tracks from top to bottom: {title, rows: [{boxes, at: indexes}]}. mark: the finding that is highlighted, or null. */
function tracksOf(data, mark) {
  const every = (boxes) => ({ boxes, at: boxes.start.map((_, i) => i) });
  const tracks = [];
  if (data.steps.length) tracks.push({ title: "Steps", rows: [every(data.steps)] });
  if (data.phases.length) tracks.push({ title: "Phases: what each moment counts for", rows: [every(data.phases)] });
  if (mark && mark.length) tracks.push({ title: "Time that the finding owns", rows: [every(mark)] });
  const idle = new Map(data.gaps.tracks.map((device, track) => [device, gapRows(data.gaps, track)]));
  if (idle.has("host")) tracks.push({ title: "Between operators", rows: idle.get("host") });
  data.lanes.forEach((lane, i) => {
    tracks.push({ title: laneName(lane), rows: laneRows(data.events, i) });
    const last = data.lanes[i + 1]?.device !== lane.device;
    if (last && idle.has(lane.device)) tracks.push({ title: `Idle time of ${lane.device}, and what it waits for`, rows: idle.get(lane.device) });
  });
  return tracks.filter((track) => track.rows.some((row) => row.at.length));
}

/** What a lane is called: a device's by the device too, a thread by its number where its process is only a number as well. */
function laneName(lane) {
  if (lane.device !== null) return `${lane.name} (${lane.device})`;
  return "thread " + (/^-?\d+\/-?\d+$/.test(lane.name) ? lane.name.split("/")[1] : lane.name);
}

function gapRows(gaps, track) {
  return [{ boxes: gaps, at: gaps.start.map((_, i) => i).filter((i) => gaps.track[i] === track) }];
}

function laneRows(events, lane) {
  const rows = [];
  events.lane.forEach((one, i) => {
    if (one === lane) (rows[events.depth[i]] ??= { boxes: events, at: [] }).at.push(i);
  });
  return Array.from(rows, (row) => row ?? { boxes: events, at: [] });
}

/** Gives tracks and rows their place from the top; returns the height of all. */
function layOut(tracks) {
  let y = RULER;
  for (const track of tracks) {
    track.y = y;
    y += HEAD;
    for (const row of track.rows) {
      row.y = y;
      y += ROW;
    }
    y += SPACE;
  }
  return y;
}

/** The box of a row at a time, `slack` ns off at most; -1 where there is none. */
function boxAt(row, time, slack) {
  const { start, dur } = row.boxes;
  let low = 0, high = row.at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[row.at[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  let best = -1, off = slack;
  for (const i of [row.at[low - 1], row.at[low]]) {
    if (i === undefined) continue;
    const far = Math.max(start[i] - time, time - start[i] - dur[i], 0);
    if (far <= off) [best, off] = [i, far];
  }
  return best;
}
