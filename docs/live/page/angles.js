// Panel 5: the same angle three ways: by definition, exact, and as a float32 product.

function anglesPanel(engine) {
  const names = ["frequencies", "exact_cos", "exact_sin", "double_cos", "double_sin", "float32_cos", "float32_sin"];
  let numbers = null, curve = [], curveOf = "";

  const changed = beforeNextPicture(update);
  const position = powerSlider("angles-position", 2, { rounded: Math.round, show: (v) => grouped(v), changed });
  const theta = powerSlider("angles-theta", 10, { changed });
  const headDim = choice("angles-head-dim", changed);
  for (const step of document.querySelectorAll("#angles [data-step]"))
    step.addEventListener("click", () => {
      position.set(Math.min(2 ** 32, Math.max(1, position.value + Number(step.dataset.step))));
      changed();
    });

  // Positions that are no power of two, and the last before one: a float keeps powers of two exactly.
  const curvePositions = [1];
  for (let n = 1; n <= 32; ++n) {
    if (n > 1) curvePositions.push(3 * 2 ** (n - 2) - (n > 2 ? 1 : 0));
    curvePositions.push(2 ** n - (n > 1 ? 1 : 0));
  }
  const positions = [...new Set(curvePositions)].sort((p, q) => p - q);

  const settings = () => ({
    head_dim: Number(headDim.value), theta: theta.value, position: position.value, curve: positions,
  });

  function anglesAt(s, p) {
    const rows = engine.call("angles", s.head_dim, s.theta, p);
    const columns = Object.fromEntries(names.map((name, k) => [name, []]));
    const worst = [0, 0, 0], defined = [];
    for (let i = 0; i < rows.length / 7; ++i) {
      names.forEach((name, k) => columns[name].push(rows[7 * i + k]));
      const exact = definition.cosSin(p, rows[7 * i]);
      defined.push(exact);
      [5, 1, 3].forEach((k, which) => {
        worst[which] = Math.max(worst[which], definition.error(exact.cos, rows[7 * i + k]), definition.error(exact.sin, rows[7 * i + k + 1]));
      });
    }
    return { ...columns, worst, defined };
  }

  function update() {
    const s = settings();
    const key = `${s.head_dim} ${s.theta}`;
    const { defined, ...here } = anglesAt(s, s.position);
    if (curveOf !== key) {
      curve = positions.map((p) => anglesAt(s, p).worst);
      curveOf = key;
    }
    numbers = {
      ...here,
      definition_cos: defined.map((d) => definition.number(d.cos)), definition_sin: defined.map((d) => definition.number(d.sin)),
      curve: curve.flat(),
    };

    const pairs = here.frequencies.length;
    const dials = [0, 1, 2, 4, 8, 16].map((part) => Math.floor((part * pairs) / 64)).filter((pair, i, all) => all.indexOf(pair) === i);
    byId("angles-dials").replaceChildren(...dials.map((pair) => {
      const dx = here.float32_cos[pair] - numbers.definition_cos[pair], dy = here.float32_sin[pair] - numbers.definition_sin[pair];
      const off = 2 * Math.asin(Math.min(1, Math.hypot(dx, dy) / 2)) * (180 / Math.PI);
      const caption = html("figcaption", {}, `pair ${pair}`);
      caption.append(html("br"), html("span", { class: "quiet", "data-value": off }, `off by ${readable(off, 2)}°`));
      return html("figure", { class: "dial" },
        dial(120, [
          { cos: numbers.definition_cos[pair], sin: numbers.definition_sin[pair], kind: "defined", length: 0.95 },
          { cos: here.exact_cos[pair], sin: here.exact_sin[pair], kind: "exact", length: 0.95 },
          { cos: here.float32_cos[pair], sin: here.float32_sin[pair], kind: "rounded", length: 0.75 },
        ], `Pair ${pair}: the float32 hand is ${off.toPrecision(2)} degrees from the definition, the exact one agrees with it.`),
        caption);
    }));

    // This position is on the curve too.
    const series = (which) =>
      [...positions.map((p, i) => [p, curve[i][which]]), [s.position, here.worst[which]]]
        .map(([p, error]) => [p, Math.max(error, 1e-17)]).sort(([p], [q]) => p - q);
    chart(byId("angles-errors"), {
      x: { min: 1, max: 2 ** 32, log: true, label: "position", ticks: octaves(0, 32, 4) },
      y: { min: 1e-17, max: 1e3, log: true, label: "largest error of cos and sin, all pairs", ticks: decades(1e-17, 1e2, 8) },
      lines: [
        { points: series(0), kind: "rounded" },
        { points: series(1), kind: "exact" },
        { points: series(2), kind: "double" },
      ],
      dots: [
        { points: [[s.position, here.worst[0]]], kind: "rounded", radius: 5 },
        { points: [[s.position, here.worst[1]]], kind: "exact", radius: 5 },
        { points: [[s.position, Math.max(here.worst[2], 1e-17)]], kind: "double", radius: 5 },
      ],
      marks: [{ x: s.position, label: grouped(s.position), kind: "now" }],
      height: 320,
      reads: `Largest errors at position ${s.position}: float32 angles ${here.worst[0].toPrecision(2)}, exact angles in float ${here.worst[1].toPrecision(2)}, in double ${here.worst[2].toPrecision(2)}.`,
    });

    table(byId("angles-table"), [`at position ${grouped(s.position)}`, "largest error of cos and sin"],
      [
        ["float32 angles", shown(here.worst[0])],
        ["posenc, float", shown(here.worst[1])],
        ["posenc, double", shown(here.worst[2])],
      ]);
  }

  return { settings, update, resize: update, numbers: () => numbers };
}
