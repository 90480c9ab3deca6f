// Panel 2: two sentences through one attention layer, with each scheme and without.

function attentionPanel(engine) {
  const heads = 8;
  const schemes = [
    { name: "none", why: "nothing says where a word stands" },
    { name: "sinusoidal", why: "each position adds waves of its own" },
    { name: "learned", why: "each position adds a row of its own" },
    { name: "RoPE", why: "scores turn with the signed distance" },
    { name: "ALiBi", why: "scores fall with the distance" },
    { name: "ALiBi, causal", why: "the same, and no word sees later ones" },
  ];
  const roundingError = 1e-10; // zero on paper is below this, a difference is far above
  let numbers = null;

  const changed = beforeNextPicture(update);
  const first = byId("attention-first"), second = byId("attention-second");
  for (const input of [first, second]) input.addEventListener("input", changed);
  const head = choice("attention-head", changed);
  const from = choice("attention-from", changed);
  const to = choice("attention-to", changed);

  const wordsOf = (text) =>
    text.split(/[ \t-\r]+/).filter((word) => word !== "").slice(0, 12)
      .map((word) => word.replace(/[A-Z]/g, (c) => c.toLowerCase()));

  const settings = () => ({ first: first.value, second: second.value });

  /** The words of both, each once; the choice stays while its word does. */
  function offer(control, words, wish) {
    const kept = words.includes(control.value) ? control.value : words.includes(wish) ? wish : words[0];
    control.input.replaceChildren(...words.map((word) => html("option", { value: word }, word)));
    control.set(kept ?? "");
    control.input.disabled = words.length === 0;
  }

  function update() {
    const a = wordsOf(first.value), b = wordsOf(second.value);
    const message = byId("attention-message"), result = byId("attention-result");
    if (a.length === 0 || b.length === 0) {
      message.textContent = "Type at least one word in each sentence.";
      result.hidden = true;
      numbers = { attention: [...engine.callWithTexts("attention", first.value, second.value)] };
      return;
    }
    result.hidden = false;
    const all = engine.callWithTexts("attention", first.value, second.value);
    numbers = { attention: [...all] };
    const n = all[0], m = all[1];
    const sameBag = [...a].sort().join(" ") === [...b].sort().join(" ");
    message.textContent = sameBag
      ? "The same words in both: only their order can tell the sentences apart."
      : "Not the same words in both: the sentences differ without any order. Try the same words in another order.";

    const shared = [...new Set(a.filter((word) => b.includes(word)))];
    const choices = shared.length ? shared : [];
    offer(from, choices, "dog");
    offer(to, choices, "man");

    // The layout of live_attention in live.hpp.
    const size = 1 + heads * (n * n + m * m);
    const weight = (scheme, sentence, row, column) => {
      const start = 2 + scheme * size + 1 + (sentence ? heads * n * n : 0);
      const words = sentence ? m : n;
      const one = (h) => all[start + (h * words + row) * words + column];
      if (head.value !== "mean") return one(Number(head.value));
      let sum = 0;
      for (let h = 0; h < heads; ++h) sum += one(h);
      return sum / heads;
    };

    const i = [a.indexOf(from.value), b.indexOf(from.value)], j = [a.indexOf(to.value), b.indexOf(to.value)];
    const chosen = choices.length > 0;
    table(byId("attention-table"),
      ["position", "told apart", "difference", ...(chosen ? [`${from.value} → ${to.value}, first`, "second"] : [])],
      schemes.map(({ name }, scheme) => {
        const difference = all[2 + scheme * size];
        const apart = difference > roundingError;
        return [name, { value: apart, text: apart ? "yes" : "no", kind: apart ? "yes" : "no" },
          { value: difference, text: difference <= roundingError ? (difference === 0 ? "0" : "≈ 0") : readable(difference) },
          ...(chosen ? [0, 1].map((sentence) => {
            const v = weight(scheme, sentence, i[sentence], j[sentence]);
            return { value: v, text: v.toFixed(4) };
          }) : [])];
      }));

    const grid = byId("attention-maps");
    if (grid.children.length !== schemes.length)
      grid.replaceChildren(...schemes.map(({ name, why }) =>
        html("figure", { class: "card" }, html("figcaption", {}, html("strong", {}, name), html("span", { class: "quiet" }, why)),
          html("div", { class: "pair-of-maps" }, html("div", {}), html("div", {})))));
    // Side by side where both fit, else one below the other.
    const letters = Math.min(9, Math.max(...[...a, ...b].map((word) => [...word].length)));
    grid.classList.toggle("stacked", 8 + 12.6 * letters + 18 * Math.max(n, m) > 160);
    schemes.forEach(({ name }, scheme) => {
      const hosts = grid.children[scheme].querySelectorAll(".pair-of-maps > div");
      [a, b].forEach((words, sentence) =>
        heatMap(hosts[sentence], {
          rows: words.length, columns: words.length, rowNames: words, columnNames: words,
          value: (r, c) => weight(scheme, sentence, r, c) / 0.5,
          label: (r, c) => `${words[r]} → ${words[c]}: ${weight(scheme, sentence, r, c).toFixed(4)}`,
          reads: `${name}, sentence ${sentence + 1}: how much each word attends to each other word`,
        }));
    });
  }

  return { settings, update, resize: update, numbers: () => numbers };
}
