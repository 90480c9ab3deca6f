// Panel 4: ALiBi's slopes, and what a distance costs in each head.

function alibiPanel(engine) {
  const size = 16;
  let numbers = null;

  const changed = beforeNextPicture(update);
  const heads = slider("alibi-heads", {
    changed() {
      bound();
      changed();
    },
  });
  const head = slider("alibi-head", { changed });
  const distance = powerSlider("alibi-distance", 2, { rounded: Math.round, changed });
  const form = choice("alibi-form", changed);

  function bound() {
    head.input.max = String(heads.value);
    if (head.value > heads.value) head.set(heads.value);
  }
  bound();

  const settings = () => ({
    heads: heads.value, head: head.value - 1, form: Number(form.value), size, distance: distance.value,
  });

  function update() {
    const s = settings();
    const slopes = engine.call("alibi_slopes", s.heads);
    const at = engine.call("alibi_at", s.heads, s.distance);
    const matrix = engine.call("alibi_matrix", s.heads, s.head, s.form, size);
    numbers = { slopes: [...slopes], at: [...at], matrix: [...matrix] };
    const slope = slopes[s.head], bias = at[s.head];

    const least = 2 ** Math.floor(Math.log2(Math.min(...slopes)) - 0.5);
    const first = Math.round(Math.log2(least));
    const everyHead = Math.max(1, Math.ceil(s.heads / 8));
    chart(byId("alibi-slopes"), {
      x: { min: 0.5, max: s.heads + 0.5, label: "head", ticks: Array.from({ length: s.heads }, (_, k) => k + 1).filter((k) => k === 1 || k % everyHead === 0).map((k) => ({ at: k, label: String(k) })) },
      y: { min: least, max: 1, log: true, label: "slope", ticks: octaves(first, 0, Math.max(1, Math.ceil(-first / 7))) },
      dots: [
        { points: [...slopes].map((m, k) => [k + 1, m]), kind: "others", radius: 4 },
        { points: [[s.head + 1, slope]], kind: "after", radius: 6 },
      ],
      height: 260,
      reads: `Slopes of ${s.heads} heads: ${[...slopes].map((m) => readable(m)).join(", ")}.`,
    });

    // What is left of a weight, e^bias, for every head; a straight line on paper, so few points do.
    const steps = Array.from({ length: 73 }, (_, k) => 2 ** (k / 6));
    chart(byId("alibi-decay"), {
      x: { min: 1, max: 2 ** 12, log: true, label: "distance of query and key", ticks: octaves(0, 12, 2) },
      y: { min: 0, max: 1, label: "what is left of a weight", ticks: [0, 0.25, 0.5, 0.75, 1].map((v) => ({ at: v, label: String(v) })) },
      lines: [
        ...[...slopes].map((m) => ({ points: steps.map((d) => [d, Math.exp(-m * d)]), kind: "others thin" })),
        { points: steps.map((d) => [d, Math.exp(-slope * d)]), kind: "after" },
      ],
      dots: [{ points: [[s.distance, Math.exp(bias)]], kind: "after", radius: 5 }],
      marks: [{ x: s.distance, label: `distance ${grouped(s.distance)}`, kind: "now" }],
      height: 260,
      reads: `What is left of a weight against the distance, head ${s.head + 1} of ${s.heads} marked: ${Math.exp(bias).toPrecision(3)} at distance ${s.distance}.`,
    });

    const finite = [...matrix].filter(Number.isFinite).map(Math.abs);
    const deepest = Math.max(...finite, 1e-300);
    const show = (v) => (v === -Infinity ? "−∞" : readable(v, 2));
    heatMap(byId("alibi-matrix"), {
      rows: size, columns: size, title: `bias of head ${s.head + 1}: query i down, key j across`,
      value: (r, c) => {
        const v = matrix[r * size + c];
        return v === -Infinity ? NaN : Math.abs(v) / deepest;
      },
      label: (r, c) => `query ${r}, key ${c}: ${show(matrix[r * size + c])}`,
      reads: `Bias of head ${s.head + 1} for 16 queries and keys, from ${show(0)} to ${show(-deepest)}`,
    });
    byId("alibi-deepest").textContent = readable(s.form === 2 ? deepest : -deepest);
    byId("alibi-matrix-note").textContent = [
      "", "; grey: keys after the query, −∞", "; it grows with the key's position, and softmax sees the differences alone",
    ][s.form];

    table(byId("alibi-table"), ["", `head ${s.head + 1} of ${s.heads}`],
      [
        ["slope m", shown(slope, 4)],
        [`bias at distance ${grouped(s.distance)}`, shown(bias, 4)],
        ["what that leaves of a weight", shown(Math.exp(bias), 4)],
        ["distance that halves a weight", shown(Math.LN2 / slope, 4)],
      ]);
  }

  return { settings, update, resize: update, numbers: () => numbers };
}
