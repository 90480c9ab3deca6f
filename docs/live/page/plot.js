// Drawing: SVG elements, and a chart of lines and dots that fills the width it is given.

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function html(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const round = (x) => Math.round(x * 100) / 100;

/** 1234567 as 1 234 567 with thin spaces; powers as they are read. */
function grouped(n) {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A number for reading: 3 digits, and 2e-8 as 2 × 10⁻⁸. */
function readable(value, digits = 3) {
  if (value === -Infinity) return "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size >= 1e-3 && size < 1e8) {
    const text = size >= 1000 ? grouped(Math.round(size)) : String(Number(size.toPrecision(digits)));
    return sign + text;
  }
  const [mantissa, exponent] = size.toExponential(digits - 2).split("e");
  return `${sign}${mantissa} × 10${superscript(Number(exponent))}`;
}

function superscript(n) {
  return String(n).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"["0123456789-".indexOf(c)]);
}

const power = (base, n) => (n === 0 ? "1" : n === 1 ? String(base) : `${base}${superscript(n)}`);

/** Ticks at whole powers of 10, at most `most` of them. */
function decades(min, max, most = 8) {
  const first = Math.ceil(Math.log10(min) - 1e-9), last = Math.floor(Math.log10(max) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let n = first; n <= last; n += step) ticks.push({ at: 10 ** n, label: power(10, n) });
  return ticks;
}

function octaves(first, last, step) {
  const ticks = [];
  for (let n = first; n <= last; n += step) ticks.push({ at: 2 ** n, label: power(2, n) });
  return ticks;
}

/**
 * A chart in place of what `host` holds.
 *   x, y       {min, max, log, ticks: [{at, label}], label}
 *   lines      [{points: [[x, y], ...], kind}]      kind is a class of style.css
 *   dots       [{points, kind, radius}]
 *   marks      [{x or y, label, kind}]              a line across, with its name
 *   reads      what a screen reader says instead
 */
function chart(host, { x, y, lines = [], dots = [], marks = [], height = 260, reads = "" }) {
  const width = Math.max(220, host.clientWidth);
  const left = 58, right = 14, top = 22, bottom = 44;
  const scale = (axis, from, to) => {
    const f = axis.log ? Math.log : (v) => v;
    const low = f(axis.min), high = f(axis.max);
    return (v) => from + ((f(Math.min(Math.max(v, axis.min), axis.max)) - low) / (high - low)) * (to - from);
  };
  const sx = scale(x, left, width - right), sy = scale(y, height - bottom, top);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": reads });

  for (const tick of y.ticks) {
    svg.append(
      element("line", { class: "grid", x1: left, x2: width - right, y1: sy(tick.at), y2: sy(tick.at) }),
      element("text", { class: "tick", x: left - 7, y: sy(tick.at) + 4, "text-anchor": "end" }, tick.label),
    );
  }
  let free = -Infinity; // the right end of the last label
  for (const tick of x.ticks) {
    const at = sx(tick.at);
    svg.append(element("line", { class: "grid", x1: at, x2: at, y1: top, y2: height - bottom }));
    const half = 3.6 * tick.label.length;
    if (at - half < free) continue;
    free = at + half + 6;
    svg.append(element("text", { class: "tick", x: at, y: height - bottom + 18, "text-anchor": "middle" }, tick.label));
  }
  svg.append(
    element("text", { class: "axis", x: (left + width - right) / 2, y: height - 7, "text-anchor": "middle" }, x.label),
    element("text", { class: "axis", x: 4, y: 13 }, y.label),
  );

  const path = (points) => {
    let d = "", pen = "M";
    for (const [px, py] of points) {
      if (!Number.isFinite(py) || (y.log && py <= 0)) {
        pen = "M";
        continue;
      }
      d += `${pen}${round(sx(px))} ${round(sy(py))}`;
      pen = "L";
    }
    return d;
  };
  for (const { points, kind } of lines) svg.append(element("path", { class: `curve ${kind}`, d: path(points) }));
  for (const { points, kind, radius = 3 } of dots)
    for (const [px, py] of points)
      if (Number.isFinite(py)) svg.append(element("circle", { class: `dot ${kind}`, cx: round(sx(px)), cy: round(sy(py)), r: radius }));
  for (const { x: mx, y: my, label, kind = "mark", below = false } of marks) {
    if (mx !== undefined) {
      const at = sx(mx), late = at > (left + width) / 2;
      svg.append(
        element("line", { class: kind, x1: at, x2: at, y1: top, y2: height - bottom }),
        element("text", { class: "tick name", x: at + (late ? -6 : 6), y: top + 12, "text-anchor": late ? "end" : "start" }, label),
      );
    } else {
      svg.append(
        element("line", { class: kind, x1: left, x2: width - right, y1: sy(my), y2: sy(my) }),
        element("text", { class: "tick name", x: left + 8, y: sy(my) + (below ? 15 : -6) }, label),
      );
    }
  }
  host.replaceChildren(svg);
}

/** A clock face. hands: [{cos, sin, kind, length}]: an angle of 0 points right, and grows counter-clockwise. */
function dial(size, hands, reads) {
  const c = size / 2, r = c - 3;
  const svg = element("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size, role: "img", "aria-label": reads });
  svg.append(element("circle", { class: "face", cx: c, cy: c, r }));
  for (let k = 0; k < 8; ++k) {
    const a = (k * Math.PI) / 4;
    svg.append(element("line", {
      class: "grid", x1: c + (r - 5) * Math.cos(a), y1: c - (r - 5) * Math.sin(a), x2: c + r * Math.cos(a), y2: c - r * Math.sin(a),
    }));
  }
  for (const { cos, sin, kind, length = 0.86 } of hands)
    svg.append(element("line", {
      class: `hand ${kind}`, x1: c, y1: c, x2: round(c + r * length * cos), y2: round(c - r * length * sin),
    }));
  svg.append(element("circle", { class: "hub", cx: c, cy: c, r: 2.5 }));
  return svg;
}

/**
 * A heat map of (rows, columns) values from 0 on, 1 and more the strongest; one that is not a number is grey. Names
 * stand beside the rows and over the columns, and label(r, c) says a square in words.
 */
function heatMap(host, { rows, columns, value, label, title, rowNames = [], columnNames = [], reads = "" }) {
  const width = Math.max(140, host.clientWidth);
  const longest = (names) => Math.min(9, Math.max(0, ...names.map((name) => [...name].length)));
  const short = (name) => ([...name].length > 9 ? [...name].slice(0, 8).join("") + "…" : name);
  const left = rowNames.length ? 8 + 8 * longest(rowNames) : 0;
  const top = (title ? 18 : 0) + (columnNames.length ? 12 + 5.6 * longest(columnNames) : 0);
  const right = columnNames.length ? 4.6 * longest(columnNames) : 0; // names lean over the last column
  const cell = Math.min(34, (width - left - right) / columns);
  const svg = element("svg", {
    viewBox: `0 0 ${width} ${round(top + cell * rows + 2)}`, width, height: round(top + cell * rows + 2), role: "img", "aria-label": reads,
  });
  if (title) svg.append(element("text", { class: "tick name", x: left, y: 11 }, title));
  for (let r = 0; r < rows; ++r)
    for (let c = 0; c < columns; ++c) {
      const v = value(r, c);
      const px = round(left + c * cell), py = round(top + r * cell), side = round(cell + 0.3);
      const hint = element("title", {}, label(r, c)); // what a mouse that rests there is told
      if (v > 0) svg.append(element("rect", { class: "heat", x: px, y: py, width: side, height: side, "fill-opacity": Math.min(1, v).toFixed(3) }, hint));
      else svg.append(element("rect", { class: Number.isNaN(v) ? "absent" : "ground", x: px, y: py, width: side, height: side }, hint));
    }
  svg.append(element("rect", { class: "frame", x: left, y: top, width: round(cell * columns), height: round(cell * rows) }));
  rowNames.forEach((name, r) =>
    svg.append(element("text", { class: "tick", x: left - 6, y: top + (r + 0.5) * cell + 4, "text-anchor": "end" }, short(name))));
  columnNames.forEach((name, c) => {
    const px = left + (c + 0.5) * cell + 2, py = top - 5;
    svg.append(element("text", { class: "tick", x: px, y: py, transform: `rotate(-50 ${round(px)} ${round(py)})` }, short(name)));
  });
  host.replaceChildren(svg);
}

/** A table in place of what `host` holds; numbers of full precision are kept in data-value. */
function table(host, head, rows) {
  const cell = (name, content) => {
    if (typeof content === "object" && content !== null) {
      const made = html(name, { "data-value": String(content.value) }, content.text);
      if (content.kind) made.className = content.kind;
      return made;
    }
    return html(name, {}, content);
  };
  const first = (content) => {
    const made = cell("th", content);
    made.scope = "row";
    return made;
  };
  host.replaceChildren(
    html("thead", {}, html("tr", {}, ...head.map((h) => {
      const made = html("th", { scope: "col" }, h);
      return made;
    }))),
    html("tbody", {}, ...rows.map((row) => html("tr", {}, first(row[0]), ...row.slice(1).map((c) => cell("td", c))))),
  );
}

const shown = (value, digits = 3) => ({ value, text: readable(value, digits) });
