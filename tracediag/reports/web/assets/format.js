"use strict";
// Numbers and names as the page writes them, and small helpers for the document. Text is only ever set as textContent.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu;

/** `text` with everything that could hide or turn what follows written as an escape. */
function clean(text) {
  return text.replace(HIDDEN, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

/** Nanoseconds in the unit that reads best, three significant digits. */
function duration(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return digits(ns / 1e9) + " s";
  if (size >= 1e5) return digits(ns / 1e6) + " ms";
  return size >= 100 ? digits(ns / 1e3) + " µs" : Math.round(ns) + " ns";
}

function digits(value) {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

function bytes(count) {
  for (const [scale, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (Math.abs(count) >= scale) return digits(count / scale) + " " + unit;
  }
  return count + " bytes";
}

/** Shapes as JSON ('[[256,4],[4]]') in words ('256x4, 4'), scalars left out. */
function shapes(json) {
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    return json; // cut because it is long
  }
  if (!Array.isArray(value)) return json;
  const list = (rows) => rows.filter(Array.isArray).map(inWords).filter(Boolean).join(", ");
  const inWords = (row) => (row.some(Array.isArray) ? list(row).replace(/^(.+)$/, "($1)") : row.join("x"));
  return list(value.some(Array.isArray) ? value : [value]);
}

/** An element with text or children. */
function element(tag, content, properties) {
  const made = Object.assign(document.createElement(tag), properties);
  if (typeof content === "string") made.textContent = content;
  else if (content) made.append(...content);
  return made;
}

const byId = (id) => document.getElementById(id);

/** Calls `draw` once before the next frame, however often it is asked. */
function onceAFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/** Value of a colour of the page. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
