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
    gaps: new Boxes("gap", raw.gaps),
    marks: raw.marks.map((mark) => new Boxes("mark", { start: mark.start, dur: mark.dur, events: new Set(mark.events), gaps: new Set(mark.gaps) })),
  };
}

/** All tracks from top to bottom: {title, rows: [{boxes, at: indexes}]}. mark: the finding that is highlighted, or null. */
function tracksOf(data, mark) {
  const every = (boxes) => ({ boxes, at: boxes.start.map((_, i) => i) });
  const tracks = [];
  if (data.steps.length) tracks.push({ title: "Steps", rows: [every(data.steps)] });
  if (data.phases.length) tracks.push({ title: "Phases: what each moment counts for", rows: [every(data.phases)] });
  if (mark && mark.length) tracks.push({ title: "Time that the finding owns", rows: [every(mark)] });
  const idle = data.gaps.tracks.map((_, track) => gapRows(data.gaps, track));
  const seen = new Set();
  data.lanes.forEach((lane, i) => {
    const track = { title: lane.device === null ? threadName(lane.name) : `${lane.name} (${lane.device})`, rows: laneRows(data.events, i) };
    tracks.push(track);
    const own = data.gaps.tracks.indexOf(lane.device);
    if (own >= 0 && !seen.has(own)) {
      seen.add(own);
      tracks.push({ title: `Idle time of ${lane.device}, by what it waits for`, rows: idle[own] });
    }
  });
  const host = data.gaps.tracks.indexOf("host");
  if (host >= 0 && !seen.has(host)) tracks.splice(tracks.length - data.lanes.length, 0, { title: "Between operators", rows: idle[host] });
  return tracks.filter((track) => track.rows.some((row) => row.at.length));
}

const threadName = (name) => (/^-?\d+\/-?\d+$/.test(name) ? "thread " + name.split("/")[1] : "thread " + name);

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
