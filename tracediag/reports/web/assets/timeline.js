// Draws the timeline on a canvas as tall as what is seen of it: the rows scroll under a ruler that stays.

const PHASES = ["forward", "backward", "optimizer", "comm", "input", "other"];
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

class Timeline {
  constructor(data, view, space, canvas) {
    Object.assign(this, { data, view, space, canvas, from: 0, to: data.length, mark: null, names: null, chosen: null, widths: new Map() });
    this.redraw = onceAFrame(() => this.draw());
    this.rebuild();
    this.recolour();
    view.addEventListener("scroll", this.redraw, { passive: true });
    new ResizeObserver(this.redraw).observe(view);
  }

  /** Takes the colours of the page anew. */
  recolour() {
    const names = ["bg", "panel", "line", "text", "muted", "focus", "mark", "ink", "hatch", "gap", "frame", ...PHASES];
    this.colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
    this.pattern = null;
    this.draw(); // at once: paper does not wait for a frame
  }

  rebuild() {
    this.tracks = tracksOf(this.data, this.mark);
    this.rows = this.tracks.flatMap((track) => track.rows);
    this.height = layOut(this.tracks);
    this.space.style.height = this.height + "px";
    if (this.colours) this.redraw();
  }

  /** Highlights a finding (its Boxes) or all events of some names (a Set of indexes of strings); null for none. */
  highlight(mark, names = null) {
    Object.assign(this, { mark, names });
    this.rebuild();
    const { scrollTop, clientHeight } = this.view;
    const loud = this.rows.filter((row) => row.at.some((i) => this.isLoud(row.boxes, i)));
    const seen = loud.some((row) => row.y >= scrollTop + RULER && row.y + ROW <= scrollTop + clientHeight);
    if (loud.length && !seen) this.view.scrollTop = loud[0].y - clientHeight / 2;
  }

  get width() {
    return this.view.clientWidth;
  }

  x(time) {
    return ((time - this.from) / (this.to - this.from)) * this.width;
  }

  time(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** Shows [from, to), kept inside the excerpt and no finer than 20 ns. */
  show(from, to) {
    const span = Math.min(Math.max(to - from, 20), this.data.length);
    this.from = Math.min(Math.max((from + to - span) / 2, 0), this.data.length - span);
    this.to = this.from + span;
    this.onshow?.(this.from, this.to);
    this.redraw();
  }

  /** Shows what another timeline shows. */
  follow(from, to) {
    Object.assign(this, { from, to });
    this.redraw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) / factor, at + (this.to - at) / factor);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  /** {row, index} of the box under a point of the view, null where there is none. */
  at(x, y) {
    const down = y + this.view.scrollTop;
    const row = y > RULER ? this.rows.find((one) => down >= one.y && down < one.y + ROW) : undefined;
    const index = row ? boxAt(row, this.time(x), 2 * (this.to - this.from) / this.width) : -1;
    return index < 0 ? null : { row, index };
  }

  /** Brings a box into view: scrolls to its row, and moves or zooms when it is outside or too small to see. */
  reveal({ row, index }, close = false) {
    const start = row.boxes.start[index], dur = row.boxes.dur[index];
    const small = dur < 6 * (this.to - this.from) / this.width;
    if (close || small) this.show(start - Math.max(dur, 100), start + 2 * Math.max(dur, 100));
    else if (start < this.from || start + dur > this.to) this.show(start + dur / 2 - (this.to - this.from) / 2, start + dur / 2 + (this.to - this.from) / 2);
    if (row.y < this.view.scrollTop + RULER || row.y + ROW > this.view.scrollTop + this.view.clientHeight) {
      this.view.scrollTop = row.y - this.view.clientHeight / 2;
    }
    this.redraw();
  }

  draw() {
    const tall = Math.min(this.height, this.view.clientHeight || this.height), scale = window.devicePixelRatio || 1;
    const { canvas } = this, pen = canvas.getContext("2d");
    if (canvas.width !== Math.round(this.width * scale) || canvas.height !== Math.round(tall * scale)) {
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(tall * scale);
      canvas.style.width = this.width + "px";
      canvas.style.height = tall + "px";
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = this.colours.bg;
    pen.fillRect(0, 0, this.width, tall);
    pen.font = FONT;
    pen.textBaseline = "middle";
    const top = this.view.scrollTop;
    this.drawGrid(pen, tall);
    for (const track of this.tracks) {
      if (track.y - top < tall && track.y - top + HEAD > 0) this.drawTitle(pen, track, top);
      for (const row of track.rows) if (row.y - top < tall && row.y - top + ROW > RULER) this.drawRow(pen, row, row.y - top);
    }
    this.drawRuler(pen);
  }

  ticks() {
    const rough = ((this.to - this.from) / this.width) * 90;
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * base).find((one) => one >= rough);
    const first = Math.ceil(this.from / step), last = Math.floor(this.to / step);
    return Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => (first + i) * step);
  }

  drawGrid(pen, tall) {
    pen.fillStyle = this.colours.panel;
    for (const time of this.ticks()) pen.fillRect(Math.round(this.x(time)), RULER, 1, tall);
  }

  drawRuler(pen) {
    pen.fillStyle = this.colours.panel;
    pen.fillRect(0, 0, this.width, RULER - 1);
    pen.fillStyle = this.colours.line;
    pen.fillRect(0, RULER - 1, this.width, 1);
    pen.fillStyle = this.colours.muted;
    for (const time of this.ticks()) {
      const x = Math.round(this.x(time));
      pen.fillRect(x, RULER - 7, 1, 6);
      pen.fillText(time === 0 ? "0" : duration(time), x + 4, 11);
    }
  }

  drawTitle(pen, track, top) {
    pen.fillStyle = this.colours.muted;
    pen.fillText(track.title, 6, track.y - top + HEAD / 2 + 1);
  }

  /** Draws the boxes of a row that are seen; of those narrower than a pixel one a pixel. */
  drawRow(pen, row, y) {
    const { start, dur } = row.boxes;
    let drawn = -1;
    for (const i of row.at) {
      const end = start[i] + dur[i];
      if (end < this.from || start[i] > this.to) continue;
      const x = Math.max(this.x(start[i]), -2), right = Math.min(this.x(end), this.width + 2);
      const isChosen = this.chosen && this.chosen.row.boxes === row.boxes && this.chosen.index === i;
      const loud = isChosen || this.isLoud(row.boxes, i);
      if (right - x < 1 && Math.floor(x) === drawn && !loud) continue;
      drawn = Math.floor(x);
      this.drawBox(pen, row.boxes, i, x, y, Math.max(right - x - (right - x > 3 ? 0.6 : 0), 1), loud);
      if (isChosen) this.outline(pen, x, y, Math.max(right - x, 3));
    }
  }

  outline(pen, x, y, width) {
    pen.strokeStyle = this.colours.text;
    pen.lineWidth = 2;
    pen.strokeRect(x, y, width, ROW - 2);
  }

  drawBox(pen, boxes, i, x, y, width, loud) {
    const tall = ROW - 2;
    pen.globalAlpha = loud || !this.selective(boxes) ? 1 : 0.28;
    pen.fillStyle = this.fill(boxes, i);
    pen.fillRect(x, y, width, tall);
    if (boxes.what === "gap" || (boxes.what === "phase" && boxes.part[i] === 2)) {
      pen.fillStyle = this.hatch(pen);
      pen.fillRect(x, y, width, tall);
    }
    if (loud && this.selective(boxes)) {
      pen.fillStyle = this.colours.mark;
      pen.fillRect(x, y + tall - 2, width, 2);
    }
    pen.globalAlpha = 1;
    const room = Math.min(x + width, this.width) - Math.max(x, 0) - 7;
    const name = room > 12 ? this.cut(pen, nameOf(this.data, boxes, i), room) : "";
    if (!name) return;
    pen.fillStyle = this.ink(boxes, loud);
    pen.fillText(name, Math.max(x, 0) + 4, y + tall / 2 + 0.5);
  }

  /** What of a name fits into `room` pixels, "" where that is less than a few letters. */
  cut(pen, name, room) {
    const wide = this.widths.get(name) ?? pen.measureText(name).width;
    this.widths.set(name, wide);
    if (wide <= room) return name;
    const letters = Math.floor((name.length * room) / wide) - 2;
    return letters >= 3 ? name.slice(0, letters) + "…" : "";
  }

  ink(boxes, loud) {
    if (!loud && this.selective(boxes)) return this.colours.muted;
    if (boxes.what === "mark") return this.colours.bg;
    return boxes.what === "gap" || boxes.what === "step" ? this.colours.text : this.colours.ink;
  }

  /** Whether some boxes of this kind stand out from the others. */
  selective(boxes) {
    return this.names ? boxes.what === "event" : this.mark !== null && (boxes.what === "event" || boxes.what === "gap");
  }

  isLoud(boxes, i) {
    if (boxes.what === "event") return this.names ? this.names.has(boxes.name[i]) : this.mark !== null && this.mark.events.has(i);
    return boxes.what === "gap" && !this.names && this.mark !== null && this.mark.gaps.has(i);
  }

  fill(boxes, i) {
    const { colours } = this;
    if (boxes.what === "step") return i % 2 ? colours.gap : colours.line;
    if (boxes.what === "mark") return colours.mark;
    if (boxes.what === "gap") return colours.gap;
    return boxes.what === "event" && isFrame(this.data, boxes, i) ? colours.frame : colours[phaseOf(this.data, boxes, i)];
  }

  hatch(pen) {
    if (!this.pattern) {
      const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 });
      const brush = tile.getContext("2d");
      brush.strokeStyle = this.colours.hatch;
      for (const shift of [-6, 0, 6]) {
        brush.moveTo(shift - 1, 7);
        brush.lineTo(shift + 7, -1);
      }
      brush.stroke();
      this.pattern = pen.createPattern(tile, "repeat");
    }
    return this.pattern;
  }
}

/** The phase of a box, `other` where it is not known. */
function phaseOf(data, boxes, i) {
  const name = boxes.what === "phase" ? data.raw.phases.names[boxes.phase[i]] : data.raw.strings[boxes.phase[i]];
  return PHASES.includes(name) ? name : "other";
}

/** Whether an event only encloses others: a Python frame, or a range whose phase is that of what it happens to hold. */
function isFrame(data, events, i) {
  const role = data.raw.strings[events.role[i]];
  if (role === "python") return true;
  return (role === "annotation" || role === "framework") && !["optimizer", "backward", "input"].includes(data.raw.strings[events.phase[i]]);
}

/** What is written on a box. */
function nameOf(data, boxes, i) {
  switch (boxes.what) {
    case "step": return `step ${boxes.number[i]} · ${duration(boxes.dur[i])}`;
    case "phase": return phaseOf(data, boxes, i) + (boxes.part[i] === 2 ? ", device idle" : "");
    case "mark": return duration(boxes.dur[i]);
    case "gap": return data.raw.gaps.tracks[boxes.track[i]] === "host" ? "in Python" : "waits " + WAITS[data.raw.gaps.owners[boxes.owner[i]]];
    default: return data.text[boxes.name[i]];
  }
}

const WAITS = {
  input: "for input", compile: "for a compilation", alloc: "for memory", sync: "while the host synchronises", runtime: "for a call of the runtime",
  op: "for an operator on the host", python: "for Python", long_launch: "for a slow launch", launch: "for the launch", queue: "in the queue",
  unknown: "for what is not known",
};
