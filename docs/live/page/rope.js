// Panel 3: what a scaling does to RoPE's wavelengths, and to the score of a query and a key.

function ropePanel(engine) {
  const schemes = ["none", "linear", "dynamic NTK", "NTK, fixed alpha", "YaRN", "Llama 3", "proportional"];
  const octaves_ = 18;
  // From the config.json files and reports of these models; what a scheme does not ask for stays as it is.
  const presets = {
    "llama-3.1-8b": { scheme: 5, head_dim: 128, theta: 500000, factor: 8, trained: 8192, low: 1, high: 4 },
    "llama-3.2-1b": { scheme: 5, head_dim: 64, theta: 500000, factor: 32, trained: 8192, low: 1, high: 4 },
    "qwen2.5-yarn": { scheme: 4, head_dim: 128, theta: 1000000, factor: 4, trained: 32768, slow: 1, fast: 32 },
    "gemma-3-27b": { scheme: 1, head_dim: 128, theta: 1000000, factor: 8, trained: 32768 },
    "gemma-4": { scheme: 6, head_dim: 512, theta: 1000000, trained: 131072, part: 0.25 },
    "internlm2": { scheme: 2, head_dim: 128, theta: 1000000, factor: 2, trained: 32768, length: 131072 },
  };
  let numbers = null;

  const changed = beforeNextPicture(update);
  const ownSettings = () => {
    preset.set("own");
    changed();
  };
  const preset = choice("rope-preset", () => {
    take(presets[preset.value]);
    changed();
  });
  const scheme = choice("rope-scheme", ownSettings);
  const headDim = choice("rope-head-dim", ownSettings);
  const theta = powerSlider("rope-theta", 10, { changed: ownSettings });
  const factor = powerSlider("rope-factor", 2, { changed: ownSettings });
  const trained = powerSlider("rope-trained", 2, { rounded: Math.round, changed: ownSettings });
  const length = powerSlider("rope-length", 2, { rounded: Math.round, changed: ownSettings });
  const low = slider("rope-low", { changed: ownSettings });
  const high = slider("rope-high", { changed: ownSettings });
  const slow = slider("rope-slow", { changed: ownSettings });
  const fast = slider("rope-fast", { changed: ownSettings });
  const part = slider("rope-part", { changed: ownSettings });

  function take(chosen) {
    if (!chosen) return; // one's own
    scheme.set(chosen.scheme);
    headDim.set(chosen.head_dim);
    for (const [name, control] of Object.entries({ theta, factor, trained, length, low, high, slow, fast, part }))
      if (chosen[name] !== undefined) control.set(chosen[name]);
  }
  take(presets[preset.value]);

  function settings() {
    const s = Number(scheme.value);
    return {
      scheme: s, head_dim: Number(headDim.value), theta: theta.value, factor: factor.value, trained: trained.value,
      length: length.value, octaves: octaves_,
      first: s === 4 ? fast.value : s === 5 ? low.value : s === 6 ? part.value : 0,
      second: s === 4 ? slow.value : s === 5 ? high.value : 0,
    };
  }

  function update() {
    const s = settings();
    for (const row of document.querySelectorAll("#rope [data-schemes]"))
      row.hidden = !row.dataset.schemes.split(" ").includes(String(s.scheme));
    byId("rope-factor-name").textContent = s.scheme === 3 ? "alpha" : "factor";

    const common = [s.scheme, s.head_dim, s.theta, s.factor, s.trained, s.length, s.first, s.second];
    const f = engine.call("rope_frequencies", ...common);
    const scores = engine.call("rope_scores", octaves_, ...common);
    const pairs = s.head_dim / 2;
    const column = (k) => Array.from({ length: scores.length / 3 }, (_, i) => scores[3 * i + k]);
    numbers = {
      attention_factor: [f[0]], before: [...f.slice(1, 1 + pairs)], after: [...f.slice(1 + pairs)],
      distances: column(0), score_before: column(1), score_after: column(2),
    };

    const wavelengths = (list) => [...list].map((frequency, i) => [i, frequency === 0 ? Infinity : (2 * Math.PI) / frequency]);
    const before = wavelengths(numbers.before), after = wavelengths(numbers.after);
    const name = schemes[s.scheme];
    const longer = (list) => list.filter(([, w]) => w > s.trained).length;
    const standing = after.filter(([, w]) => w === Infinity).length;
    byId("rope-note").textContent = standing ? `${standing} of ${pairs} pairs stand still` : "";
    const top = 10 ** Math.ceil(Math.log10(Math.max(...[...before, ...after].map(([, w]) => w).filter(Number.isFinite), s.trained)));
    const every = pairs > 128 ? 64 : pairs > 64 ? 16 : pairs > 32 ? 16 : 8;
    chart(byId("rope-wavelengths"), {
      x: { min: 0, max: pairs - 1, label: "pair", ticks: Array.from({ length: Math.ceil(pairs / every) }, (_, k) => ({ at: k * every, label: String(k * every) })) },
      y: { min: 1, max: top, log: true, label: "positions for a whole turn", ticks: decades(1, top) },
      lines: [{ points: before, kind: "before" }, ...(s.scheme ? [{ points: after, kind: "after" }] : [])],
      dots: s.scheme && pairs <= 64 ? [{ points: after, kind: "after", radius: 2.4 }] : [],
      marks: [{ y: s.trained, label: `trained length ${grouped(s.trained)}`, kind: "mark" }],
      height: 300,
      reads: `Wavelength of each of ${pairs} pairs, without scaling and with ${name}. ${longer(before)} pairs are longer than the trained ${s.trained} positions without scaling, ${longer(after)} with it.`,
    });
    const points = (values) => numbers.distances.map((d, i) => [d, values[i]]).filter(([d]) => d >= 1);
    const least = Math.min(-0.2, ...numbers.score_before, ...numbers.score_after);
    const most = Math.max(1, ...numbers.score_after);
    const ticks = [-0.5, 0, 0.5, 1, 1.5, 2].filter((v) => v >= least && v <= most).map((at) => ({ at, label: readable(at) }));
    chart(byId("rope-scores"), {
      x: { min: 1, max: 2 ** octaves_, log: true, label: "distance of query and key", ticks: octaves(0, octaves_, 3) },
      y: { min: least, max: most, label: "score, 1 at distance 0 without scaling", ticks },
      lines: [{ points: points(numbers.score_before), kind: "before thin" }, ...(s.scheme ? [{ points: points(numbers.score_after), kind: "after thin" }] : [])],
      marks: [{ x: s.trained, label: "trained", kind: "mark" }],
      height: 300,
      reads: `Score of a query and a key of ones against their distance, without scaling and with ${name}.`,
    });

    const slowest = (list) => Math.max(...list.map(([, w]) => w));
    table(byId("rope-table"), ["", "without scaling", name],
      [
        ["shortest wavelength", shown(before[0][1], 4), shown(after[0][1], 4)],
        ["longest wavelength", shown(slowest(before), 4), standing ? { value: Infinity, text: "∞ (stands still)" } : shown(slowest(after), 4)],
        [`pairs that don't finish a turn in ${grouped(s.trained)}`, shown(longer(before)), shown(longer(after))],
        ["factor on cos and sin", shown(1, 4), shown(f[0], 4)],
      ]);
  }

  return { settings, update, resize: update, numbers: () => numbers };
}
