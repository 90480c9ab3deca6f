// Panel 1: the first 8 dimensions as curves, and pairs as clock hands.

function wavesPanel(engine) {
  const fractions = 64, curveFractions = 8, window_ = 64, shownDims = 8;
  let curves = null, curvesOf = "", numbers = null, position = 5, playing = false;

  const changed = beforeNextPicture(update);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const at = slider("waves-position", {
    show: (v) => String(v),
    changed() {
      position = at.value;
      changed();
    },
  });
  const width = powerSlider("waves-d-model", 2, { rounded: Math.round, changed });
  const base = powerSlider("waves-base", 10, { changed });
  const play = byId("waves-play");

  let last = 0, waited = 0;
  function step(now) {
    if (!playing) return;
    const seconds = Math.min(0.1, (now - last) / 1000);
    last = now;
    if (still.matches) {
      waited += seconds; // whole positions, one a second: nothing sweeps
      if (waited >= 1) {
        waited = 0;
        position = (Math.floor(position) + 1) % (window_ + 1);
        show();
      }
    } else {
      position = (position + 2 * seconds) % window_;
      show();
    }
    requestAnimationFrame(step);
  }
  function show() {
    at.input.value = String(Math.round(position));
    at.value = Number(at.input.value);
    at.write();
    update();
  }
  play.addEventListener("click", () => {
    playing = !playing;
    play.textContent = playing ? "Pause" : "Play";
    if (playing) {
      last = performance.now();
      waited = 0;
      requestAnimationFrame(step);
    } else {
      position = Math.round(position); // at rest the hands show the position that the slider names
      changed();
    }
  });

  function settings() {
    return {
      d_model: width.value, base: base.value, position: Math.round(position * fractions) / fractions,
      fractions, window: window_, curve_fractions: curveFractions,
    };
  }

  function update() {
    const s = settings();
    const frequencies = engine.call("sinusoidal_frequencies", s.d_model, s.base);
    const key = `${s.d_model} ${s.base}`;
    if (curvesOf !== key) {
      curves = engine.call("sinusoidal_rows", s.d_model, s.base, 0, curveFractions, window_ * curveFractions + 1, shownDims);
      curvesOf = key;
      drawnWidth = 0;
    }
    const row = engine.call("sinusoidal_rows", s.d_model, s.base, s.position * fractions, fractions, 1, s.d_model);
    numbers = { frequencies: [...frequencies], row: [...row], curves: [...curves] };
    drawLanes(s, row);
    drawDials(s, frequencies, row);
  }

  // The curves stay while only the position moves.
  let drawnWidth = 0, moving = null;
  const laneHeight = 42, left = 46, right = 58;
  function drawLanes(s, row) {
    const host = byId("waves-lanes");
    const w = host.clientWidth;
    const sx = (p) => left + (p / window_) * (w - left - right);
    const sy = (lane, v) => laneHeight * (lane + 0.5) + 6 - v * (laneHeight * 0.4);
    if (drawnWidth !== w) {
      drawnWidth = w;
      const height = laneHeight * shownDims + 44;
      const svg = element("svg", { viewBox: `0 0 ${w} ${height}`, width: w, height, role: "img" });
      for (let p = 0; p <= window_; p += 8) {
        svg.append(element("line", { class: "grid", x1: sx(p), x2: sx(p), y1: 6, y2: laneHeight * shownDims + 6 }));
        if (p % 16 === 0) svg.append(element("text", { class: "tick", x: sx(p), y: laneHeight * shownDims + 22, "text-anchor": "middle" }, String(p)));
      }
      svg.append(element("text", { class: "axis", x: sx(window_ / 2), y: laneHeight * shownDims + 39, "text-anchor": "middle" }, "position"));
      for (let lane = 0; lane < shownDims; ++lane) {
        svg.append(
          element("line", { class: "grid", x1: left, x2: w - right, y1: sy(lane, 0), y2: sy(lane, 0) }),
          element("text", { class: "tick", x: left - 8, y: sy(lane, 0) + 4, "text-anchor": "end" }, `${lane % 2 ? "cos" : "sin"} ${Math.floor(lane / 2)}`),
        );
        let d = "";
        for (let k = 0; k <= window_ * curveFractions; ++k)
          d += `${k ? "L" : "M"}${round(sx(k / curveFractions))} ${round(sy(lane, curves[k * shownDims + lane]))}`;
        svg.append(element("path", { class: `curve pair-${Math.floor(lane / 2)} ${lane % 2 ? "dashed" : ""}`, d }));
      }
      moving = element("g");
      svg.append(moving);
      host.replaceChildren(svg);
    }
    const px = sx(s.position);
    const parts = [element("line", { class: "now", x1: px, x2: px, y1: 2, y2: laneHeight * shownDims + 10 })];
    for (let lane = 0; lane < shownDims; ++lane) {
      parts.push(
        element("circle", { class: `dot pair-${Math.floor(lane / 2)}`, cx: px, cy: sy(lane, row[lane]), r: 4 }),
        element("text", { class: "tick value", x: w - 4, y: sy(lane, 0) + 4, "text-anchor": "end", "data-value": row[lane] }, row[lane].toFixed(3).replace("-", "−")),
      );
    }
    moving.replaceChildren(...parts);
    host.firstChild.setAttribute("aria-label",
      `The first 8 of ${s.d_model} dimensions. At position ${s.position} they are ${[...row.slice(0, 8)].map((v) => v.toFixed(3)).join(", ")}.`);
  }

  function drawDials(s, frequencies, row) {
    const pairs = frequencies.length;
    const far = [0.25, 0.5, 0.75, 1].map((part) => Math.round(part * pairs) - 1).filter((pair) => pair > 3);
    const draw = (host, list) => {
      host.replaceChildren(...list.map((pair) => {
        const sin = row[2 * pair], cos = row[2 * pair + 1];
        const wavelength = (2 * Math.PI) / frequencies[pair];
        const caption = html("figcaption", {}, `pair ${pair}`);
        caption.append(html("br"), html("span", { class: "quiet", "data-value": wavelength }, `once in ${readable(wavelength)}`));
        const kind = pair < 4 ? `pair-${pair}` : "far";
        return html("figure", { class: "dial" }, dial(88, [{ cos, sin, kind }], `Pair ${pair}: cosine ${cos.toFixed(3)}, sine ${sin.toFixed(3)}`), caption);
      }));
    };
    draw(byId("waves-dials"), [0, 1, 2, 3]);
    draw(byId("waves-far-dials"), far);
    byId("waves-far-dials").parentElement.hidden = far.length === 0;
  }

  return {
    settings, update, numbers: () => numbers,
    resize() {
      drawnWidth = 0;
      update();
    },
  };
}
