// The live page in headless Chromium: every panel's numbers against those of posenc_live_numbers, and what a reader
// needs besides: a keyboard is enough, a phone is wide enough, nothing is loaded, no error is logged.
//
//   node browser.mjs PAGE NUMBERS BUILD     the HTML file, the program, and a folder that has playwright-core in its
//                                           node_modules and gets the screenshots

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pageFile, numbersProgram, build] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(build, "tests.js"))("playwright-core");

let passed = 0, failed = 0, compared = 0;
function check(name, holds, detail = "") {
  if (holds) return void ++passed;
  ++failed;
  console.log(`FAILED: ${name}${detail === "" ? "" : `: ${detail}`}`);
}

// ---- Numbers

const native = (settings) => {
  const line = execFileSync(numbersProgram, { input: JSON.stringify(settings) + "\n", encoding: "utf8", maxBuffer: 1 << 28 });
  return JSON.parse(line, (key, value) => (value === "-inf" ? -Infinity : value));
};

/** Lists of the same length whose numbers differ by no more than tolerance(index, expected). */
function same(name, got, expected, tolerance) {
  if (got.length !== expected.length || got.length === 0)
    return check(name, false, `${got.length} numbers, expected ${expected.length}`);
  compared += got.length;
  const wrong = got.findIndex((v, i) => !(v === expected[i] || Math.abs(v - expected[i]) <= tolerance(i, expected[i])));
  check(name, wrong < 0, wrong < 0 ? "" : `number ${wrong} is ${got[wrong]}, expected ${expected[wrong]}`);
}
const within = (size) => () => size;
const relative = (size) => (i, expected) => size * Math.abs(expected);

const lowered = (superscripts) => superscripts.replace(/./g, (c) => "0123456789-"["⁰¹²³⁴⁵⁶⁷⁸⁹⁻".indexOf(c)]);

/** What a reader reads as a number: 1 234, −0.5, 2.5 × 10⁻⁸. */
function parsed(text) {
  const plain = text.replace(/[\u202f ]/g, "").replace(/−/g, "-").replace(/∞.*/, "Infinity").replace(/\(.*\)/, "")
    .replace(/°$/, "").replace(/^\D*(?=[-\d])/, (word) => (word.includes("-") ? "-" : ""));
  return Number(plain.replace(/×10(.*)$/, (_, n) => `e${lowered(n)}`));
}
/** Texts that say these numbers, to the digits that they have. */
function says(name, texts, expected, digits = 3) {
  same(name, texts.map(parsed), expected, (i, v) => 0.51 * 10 ** (Math.floor(Math.log10(Math.abs(v) || 1)) + 1 - digits) + 1e-9);
}

// ---- The browser

const profile = mkdtempSync(join(tmpdir(), "posenc-live-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.POSENC_CHROMIUM || "/usr/bin/chromium",
  headless: true,
  viewport: { width: 1280, height: 900 },
  args: [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
const requests = [], complaints = [];
context.on("request", (request) => requests.push(request.url()));

async function open(url) {
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  await page.waitForSelector("html[data-ready]", { timeout: 30000 });
  return page;
}
const url = pathToFileURL(pageFile).href;
const page = await open(url);

const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Sets controls as a hand would, then waits for the picture. */
async function set(values) {
  for (const [id, value] of Object.entries(values)) {
    const kind = await page.locator(`#${id}`).evaluate((e) => e.type);
    if (kind === "select-one") await page.selectOption(`#${id}`, { value: String(value) });
    else if (kind === "text") await page.fill(`#${id}`, value);
    else
      await page.locator(`#${id}`).evaluate((e, v) => {
        e.value = String(v);
        e.dispatchEvent(new Event("input", { bubbles: true }));
      }, value);
  }
  await drawn();
}
const settingsOf = (panel) => page.evaluate((p) => live.settings(p), panel);
const numbersOf = (panel) => page.evaluate((p) => live.numbers(p), panel);
const texts = (selector) => page.locator(selector).allTextContents();

/** Sets controls, checks the settings that they stand for, and gives the numbers of page and program. */
async function both(panel, controls, expectedSettings, extra = () => ({})) {
  await set(controls);
  const settings = await settingsOf(panel);
  for (const [name, value] of Object.entries(expectedSettings))
    check(`${panel}: the controls stand for ${name} = ${value}`, settings[name] === value, settings[name]);
  const shown = await numbersOf(panel);
  return { settings, shown, expected: native({ panel, ...settings, ...extra(shown) }) };
}

/** What dots stand for, read off the picture by the two outermost ticks of its logarithmic y axis. */
async function readOff(selector, kind) {
  const { ticks, dots } = await page.locator(`${selector} svg`).evaluate((svg, kind) => ({
    ticks: [...svg.querySelectorAll("text.tick[text-anchor=end]:not(.name)")].map((t) => [t.textContent, Number(t.getAttribute("y")) - 4]),
    dots: [...svg.querySelectorAll(`.dot.${kind}`)].map((dot) => Number(dot.getAttribute("cy"))),
  }), kind);
  const exponent = (label) => (label === "1" ? 0 : Number(lowered(label.replace(/^(10|2)/, "")) || 1));
  const base = ticks.some(([label]) => label.startsWith("10")) ? 10 : 2;
  const [first, last] = [ticks[0], ticks.at(-1)];
  const [low, high] = [exponent(first[0]), exponent(last[0])];
  return dots.map((y) => base ** (low + ((y - first[1]) / (last[1] - first[1])) * (high - low)));
}

/** The hands of every dial as [cos, sin], each a unit long in the picture after division by its length. */
const hands = (selector, kind, length) =>
  page.locator(`${selector} svg`).evaluateAll((dials, [kind, length]) => dials.flatMap((svg) => {
    const hand = svg.querySelector(`.hand${kind}`), r = Number(svg.querySelector(".face").getAttribute("r")) * length;
    const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name) => Number(hand.getAttribute(name)));
    return [(x2 - x1) / r, (y1 - y2) / r];
  }), [kind, length]);

/** How strong each square of a heat map is. */
const strengths = (map) =>
  map.locator(".heat, .ground, .absent").evaluateAll((squares) => squares.map((s) => (s.classList.contains("heat") ? Number(s.getAttribute("fill-opacity")) : 0)));

// ---- Each panel against the native program

async function testWaves() {
  const cases = [
    [{ "waves-position": 5 }, { d_model: 512, base: 10000, position: 5 }],
    [{ "waves-position": 64, "waves-d-model": 3, "waves-base": 4 }, { d_model: 8, base: 10000, position: 64 }],
    [{ "waves-position": 0, "waves-d-model": 4, "waves-base": 1 }, { d_model: 16, base: 10, position: 0 }],
    [{ "waves-position": 33, "waves-d-model": 12, "waves-base": 7 }, { d_model: 4096, base: 1e7, position: 33 }],
    [{ "waves-position": 17, "waves-d-model": 6, "waves-base": 2.7 }, { d_model: 64, base: 501, position: 17 }],
  ];
  for (const [controls, expectedSettings] of cases) {
    const { settings, shown, expected } = await both("waves", controls, expectedSettings);
    const name = `waves, d_model ${settings.d_model}, base ${settings.base}, position ${settings.position}`;
    same(`${name}: frequencies`, shown.frequencies, expected.frequencies, relative(1e-15));
    same(`${name}: the row`, shown.row, expected.row, within(1e-13));
    same(`${name}: the curves`, shown.curves, expected.curves, within(1e-13));
    // Against the equation itself.
    same(`${name}: the paper's equation`, shown.row, shown.row.map((_, i) => {
      const angle = settings.position / settings.base ** ((2 * Math.floor(i / 2)) / settings.d_model);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    }), within(1e-12));
    same(`${name}: the values beside the curves`, (await texts("#waves-lanes .value")).map(parsed), expected.row.slice(0, 8), within(5.1e-4));
    same(`${name}: the hands of the clocks`, await hands("#waves-dials", "", 0.86),
      [0, 1, 2, 3].flatMap((pair) => [expected.row[2 * pair + 1], expected.row[2 * pair]]), within(2e-4));
    says(`${name}: the first wavelengths`, await texts("#waves-dials .quiet"), expected.frequencies.slice(0, 4).map((f) => (2 * Math.PI) / f));
  }
}

async function testAttention() {
  const schemes = 6, heads = 8;
  const cases = [
    ["The dog bit the man", "The man bit the dog", true],
    ["All cats chase mice", "Mice chase all cats", true],
    ["Ships sail", "sail Ships", true],
    ["one", "one", true],
    ["Ein Bär frißt  Käse", "Käse frißt ein Bär", true],
    ["to be or not to be", "that is the question", false],
    ["a b c d e f g h i j k l m n o", "l k j i h g f e d c b a z", true],
  ];
  for (const [first, second, sameBag] of cases) {
    const { shown, expected } = await both("attention", { "attention-first": first, "attention-second": second }, { first, second });
    const name = `attention, "${first}" and "${second}"`;
    same(name, shown.attention, expected.attention, within(1e-11));
    const [n, m] = expected.attention;
    const size = 1 + heads * (n * n + m * m);
    const differences = Array.from({ length: schemes }, (_, s) => expected.attention[2 + s * size]);
    says(`${name}: the differences in the table`, (await texts("#attention-table tbody td:nth-child(3)")), differences.map((d) => (d < 1e-10 ? 0 : d)));
    check(`${name}: no position, and ${sameBag ? "no" : "a"} difference`, differences[0] < 1e-10 === sameBag, differences[0]);
    const apart = await texts("#attention-table tbody td:nth-child(2)");
    check(`${name}: told apart`, apart.join() === differences.map((d) => (d > 1e-10 ? "yes" : "no")).join(), apart.join());
    check(`${name}: 12 maps of weights`, (await page.locator("#attention-maps svg").count()) === 12);
    for (const scheme of [0, 3, 5])
      for (const sentence of [0, 1]) {
        const count = [n, m][sentence], start = 2 + scheme * size + 1 + sentence * heads * n * n;
        const mean = (i) => Array.from({ length: heads }, (_, h) => expected.attention[start + h * count * count + i]).reduce((a, b) => a + b) / heads;
        same(`${name}: the squares of scheme ${scheme}, sentence ${sentence + 1}`, await strengths(page.locator("#attention-maps svg").nth(2 * scheme + sentence)),
          Array.from({ length: count * count }, (_, i) => Math.min(1, mean(i) / 0.5)), within(6e-4));
      }
    // The weights that a reader picks: the mean of all heads, then head 5.
    if (await page.locator("#attention-from option").count()) {
      for (const head of ["mean", "4"]) {
        await set({ "attention-head": head });
        const words = [first, second].map((text) => text.toLowerCase().split(/ +/));
        const from = await page.inputValue("#attention-from"), to = await page.inputValue("#attention-to");
        const weight = (scheme, sentence) => {
          const count = [n, m][sentence], start = 2 + scheme * size + 1 + sentence * heads * n * n;
          const of = (h) => expected.attention[start + (h * count + words[sentence].indexOf(from)) * count + words[sentence].indexOf(to)];
          return head === "mean" ? Array.from({ length: heads }, (_, h) => of(h)).reduce((a, b) => a + b) / heads : of(Number(head));
        };
        for (const sentence of [0, 1])
          same(`${name}: weights of head ${head} in the table`, (await texts(`#attention-table tbody td:nth-child(${4 + sentence})`)).map(parsed),
            Array.from({ length: schemes }, (_, s) => weight(s, sentence)), within(5.1e-5));
      }
      await set({ "attention-head": "mean" });
    }
  }
  await set({ "attention-first": "  " });
  check("attention: an empty sentence is asked for", (await page.textContent("#attention-message")).startsWith("Type at least one word"));
  check("attention: and nothing stale is shown", !(await page.isVisible("#attention-result")));
  await set({ "attention-first": "The dog bit the man", "attention-second": "The man bit the dog" });
}

async function testRope() {
  const cases = [
    [{}, { scheme: 5, theta: 500000, factor: 8 }], // as the page opens
    [{ "rope-preset": "llama-3.1-8b" }, { scheme: 5, head_dim: 128, theta: 500000, factor: 8, trained: 8192, first: 1, second: 4 }],
    [{ "rope-preset": "llama-3.2-1b" }, { scheme: 5, head_dim: 64, theta: 500000, factor: 32 }],
    [{ "rope-preset": "qwen2.5-yarn" }, { scheme: 4, head_dim: 128, theta: 1e6, factor: 4, trained: 32768, first: 32, second: 1 }],
    [{ "rope-preset": "gemma-3-27b" }, { scheme: 1, head_dim: 128, theta: 1e6, factor: 8 }],
    [{ "rope-preset": "gemma-4" }, { scheme: 6, head_dim: 512, theta: 1e6, first: 0.25 }],
    [{ "rope-preset": "internlm2" }, { scheme: 2, theta: 1e6, factor: 2, trained: 32768, length: 131072 }],
    [{ "rope-length": 12 }, { scheme: 2, length: 4096 }], // within the trained length: as without scaling
    [{ "rope-scheme": 3, "rope-factor": 9.97, "rope-theta": 4 }, { scheme: 3, factor: 1000, theta: 10000 }],
    [{ "rope-scheme": 4, "rope-head-dim": 32, "rope-fast": 16, "rope-slow": 2.5, "rope-trained": 9 }, { scheme: 4, head_dim: 32, first: 16, second: 2.5, trained: 512 }],
    [{ "rope-scheme": 5, "rope-low": 0.5, "rope-high": 12, "rope-trained": 12 }, { scheme: 5, first: 0.5, second: 12, trained: 4096 }],
    [{ "rope-scheme": 6, "rope-part": 0.5, "rope-head-dim": 256 }, { scheme: 6, first: 0.5, head_dim: 256 }],
    [{ "rope-scheme": 0, "rope-head-dim": 128 }, { scheme: 0 }],
  ];
  for (const [controls, expectedSettings] of cases) {
    const { settings, shown, expected } = await both("rope", controls, expectedSettings);
    const name = `rope, ${JSON.stringify(controls)}`;
    same(`${name}: attention factor`, shown.attention_factor, expected.attention_factor, relative(1e-15));
    same(`${name}: frequencies before`, shown.before, expected.before, relative(1e-15));
    same(`${name}: frequencies after`, shown.after, expected.after, relative(1e-14));
    same(`${name}: distances`, shown.distances, expected.distances, within(0));
    const rounding = (i) => 1e-13 + 2e-15 * expected.distances[i];
    same(`${name}: scores before`, shown.score_before, expected.score_before, rounding);
    same(`${name}: scores after`, shown.score_after, expected.score_after, rounding);
    const cosines = (list) => expected.distances.map((d) => list.reduce((sum, f) => sum + Math.cos(d * f), 0) / list.length);
    same(`${name}: the sum of cosines`, shown.score_before, cosines(expected.before), (i) => 1e-12 + 1e-15 * expected.distances[i]);
    const wavelengths = expected.after.map((f) => (f === 0 ? Infinity : (2 * Math.PI) / f));
    const longest = Math.max(...wavelengths);
    if (settings.scheme !== 0 && settings.scheme !== 6 && settings.head_dim <= 128)
      same(`${name}: wavelengths read off the picture`, await readOff("#rope-wavelengths", "after"), wavelengths, relative(2e-3));
    says(`${name}: the table`, await texts("#rope-table tbody td:nth-child(3)"),
      [wavelengths[0], longest, wavelengths.filter((w) => w > settings.trained).length, expected.attention_factor[0]]);
  }
  await set({ "rope-preset": "llama-3.1-8b" });
}

async function testAlibi() {
  const cases = [
    [{}, { heads: 8, head: 2, form: 1, distance: 8 }],
    [{ "alibi-heads": 12, "alibi-head": 12, "alibi-form": 0, "alibi-distance": 10 }, { heads: 12, head: 11, form: 0, distance: 1024 }],
    [{ "alibi-heads": 40, "alibi-head": 33, "alibi-form": 2, "alibi-distance": 12 }, { heads: 40, head: 32, form: 2, distance: 4096 }],
    [{ "alibi-heads": 64, "alibi-head": 64 }, { heads: 64, head: 63 }],
    [{ "alibi-heads": 1, "alibi-form": 1, "alibi-distance": 0 }, { heads: 1, head: 0, form: 1, distance: 1 }], // the head follows
    [{ "alibi-heads": 8, "alibi-head": 3, "alibi-distance": 3 }, { heads: 8, head: 2, distance: 8 }],
  ];
  for (const [controls, expectedSettings] of cases) {
    const { settings, shown, expected } = await both("alibi", controls, expectedSettings);
    const name = `alibi, ${settings.heads} heads, head ${settings.head + 1}, form ${settings.form}, distance ${settings.distance}`;
    same(`${name}: slopes`, shown.slopes, expected.slopes, relative(4e-16));
    same(`${name}: bias at the distance`, shown.at, expected.at, relative(4e-16));
    same(`${name}: matrix`, shown.matrix, expected.matrix, relative(4e-16));
    const slope = expected.slopes[settings.head], bias = expected.at[settings.head];
    if (settings.heads > 1) same(`${name}: slopes read off the picture`, await readOff("#alibi-slopes", "others"), expected.slopes, relative(2e-3));
    const deepest = Math.max(1e-300, ...expected.matrix.filter(Number.isFinite).map(Math.abs));
    same(`${name}: squares of the matrix`, await strengths(page.locator("#alibi-matrix svg")),
      expected.matrix.map((v) => (Number.isFinite(v) ? Math.abs(v) / deepest : 0)), within(6e-4));
    says(`${name}: the table`, await texts("#alibi-table tbody td"), [slope, bias, Math.exp(bias), Math.LN2 / slope]);
  }
}

async function testAngles() {
  const cases = [
    [{ "angles-position": 0 }, { head_dim: 128, theta: 10000, position: 1 }],
    [{ "angles-position": 32 }, { position: 2 ** 32 }],
    [{ "angles-position": 31.9 }, { position: 4007346185 }],
    [{ "angles-position": 17, "angles-theta": 5.7, "angles-head-dim": 64 }, { head_dim: 64, theta: 501000, position: 131072 }],
    [{ "angles-position": 20.01, "angles-theta": 7, "angles-head-dim": 256 }, { head_dim: 256, theta: 1e7 }],
    [{ "angles-position": 20.3, "angles-theta": 4, "angles-head-dim": 128 }, { head_dim: 128, theta: 10000 }],
  ];
  for (const [controls, expectedSettings] of cases) {
    const { settings, shown, expected } = await both("angles", controls, expectedSettings, (numbers) => ({ frequencies: numbers.frequencies }));
    const name = `angles, d ${settings.head_dim}, theta ${settings.theta}, position ${settings.position}`;
    const p = settings.position;
    same(`${name}: frequencies`, shown.frequencies, expected.frequencies, relative(2.3e-16));
    // A frequency may differ in its last bit, and then the phase does.
    const phase = (i) => Math.abs(shown.frequencies[i] - expected.frequencies[i]) * p;
    for (const f of ["cos", "sin"]) {
      same(`${name}: the definition's ${f}, against MPFR`, shown[`definition_${f}`], expected[`definition_${f}`], within(1.2e-16));
      same(`${name}: exact ${f}`, shown[`exact_${f}`], expected[`exact_${f}`], (i) => phase(i) + (phase(i) ? 6.1e-8 : 0));
      same(`${name}: exact ${f} in double`, shown[`double_${f}`], expected[`double_${f}`], (i) => 2 * phase(i));
      same(`${name}: float32 ${f}`, shown[`float32_${f}`], expected[`float32_${f}`], within(1.3e-7));
      same(`${name}: exact ${f} agrees with the definition`, shown[`exact_${f}`], expected[`definition_${f}`], within(3.2e-8));
      same(`${name}: exact ${f} in double agrees with it`, shown[`double_${f}`], expected[`definition_${f}`], within(4e-16));
    }
    same(`${name}: largest errors`, shown.worst, expected.worst, (i) => [2e-7, 1e-9, 1e-16][i]);
    same(`${name}: errors along the curve`, shown.curve, expected.curve, (i) => [2e-7, 1e-9, 1e-16][i % 3]);
    says(`${name}: the table`, await texts("#angles-table tbody td"), shown.worst);
    const pairs = { 64: [0, 1, 2, 4, 8], 128: [0, 1, 2, 4, 8, 16], 256: [0, 2, 4, 8, 16, 32] }[settings.head_dim];
    for (const [kind, length, which] of [["defined", 0.95, "definition"], ["exact", 0.95, "exact"], ["rounded", 0.75, "float32"]])
      same(`${name}: hands of ${which}`, await hands("#angles-dials", `.${kind}`, length),
        pairs.flatMap((pair) => [shown[`${which}_cos`][pair], shown[`${which}_sin`][pair]]), within(2e-4));
    for (const [which, kind] of ["rounded", "exact", "double"].entries())
      same(`${name}: the error of ${kind} read off the picture`, await readOff("#angles-errors", kind), [Math.max(1e-17, shown.worst[which])], relative(5e-3));
  }
  const far = await numbersOf("angles");
  check("angles: float32 angles are off by all there is at 2^32", far.curve.at(-3) > 0.5, far.curve.at(-3));
  const before = (await settingsOf("angles")).position;
  await page.click("#angles [data-step='1']");
  await drawn();
  check("angles: the button moves by one position", (await settingsOf("angles")).position === before + 1);
  await page.click("#angles [data-step='-1']");
  await drawn();
}

// ---- What a reader needs besides

async function testMotion() {
  const at = async () => (await settingsOf("waves")).position;
  await set({ "waves-position": 5 });
  await page.waitForTimeout(300);
  check("motion: nothing moves by itself", (await at()) === 5);
  await page.click("#waves-play");
  await page.waitForFunction(() => live.settings("waves").position > 5.2, null, { timeout: 5000 });
  check("motion: Play moves the hands", true);
  const [between, moving] = await page.evaluate(() => [live.settings("waves"), live.numbers("waves")]);
  same("motion: a row between two positions", moving.row, native({ panel: "waves", ...between }).row, within(1e-13));
  await page.click("#waves-play");
  await drawn();
  const still = await at();
  await page.waitForTimeout(300);
  check("motion: Pause stops them, at a whole position", (await at()) === still && Number.isInteger(still), still);

  await page.emulateMedia({ reducedMotion: "reduce" });
  await set({ "waves-position": 5 });
  await page.click("#waves-play");
  const seen = [];
  for (let k = 0; k < 14; ++k) {
    seen.push(await at());
    await page.waitForTimeout(100);
  }
  await page.click("#waves-play");
  check("motion: with less motion asked for, whole positions only", seen.every(Number.isInteger), seen.join(" "));
  check("motion: and it moves all the same", seen.at(-1) > 5, seen.join(" "));
  await page.emulateMedia({ reducedMotion: null });
}

async function testKeyboard() {
  const controls = await page.evaluate(() =>
    [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")].filter((e) => e.offsetParent !== null).map((e, i) => {
      e.dataset.control = String(i);
      const name = e.labels?.[0]?.textContent || e.getAttribute("aria-label") || e.textContent;
      return { name: name.trim(), id: e.id };
    }));
  check("keyboard: every control has a name", controls.every(({ name }) => name !== ""), JSON.stringify(controls.filter(({ name }) => name === "")));
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  const reached = new Set();
  let outlined = true;
  for (let k = 0; k < controls.length + 5; ++k) {
    await page.keyboard.press("Tab");
    const { which, outline } = await page.evaluate(() => {
      const e = document.activeElement, style = getComputedStyle(e);
      return { which: e.dataset.control, outline: e === document.body || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) };
    });
    outlined &&= outline;
    if (which !== undefined) reached.add(which);
  }
  check(`keyboard: Tab reaches all ${controls.length} controls`, reached.size === controls.length,
    controls.filter((_, i) => !reached.has(String(i))).map(({ id, name }) => id || name).join(", "));
  check("keyboard: focus is always to be seen", outlined);

  for (const { id } of controls) {
    if (id === "") continue;
    const type = await page.locator(`#${id}`).evaluate((e) => e.type);
    if (type === "range") {
      const read = () => page.textContent(`#${id}-value`);
      const before = await read();
      await page.focus(`#${id}`);
      const end = await page.locator(`#${id}`).evaluate((e) => e.value === e.max);
      await page.keyboard.press(end ? "ArrowLeft" : "ArrowRight");
      await drawn();
      // A fine slider may need a few steps before its third digit changes.
      for (let k = 0; k < 5 && (await read()) === before; ++k) await page.keyboard.press(end ? "ArrowLeft" : "ArrowRight");
      check(`keyboard: an arrow moves ${id}`, (await read()) !== before, before);
      check(`keyboard: ${id} says its value`, (await page.getAttribute(`#${id}`, "aria-valuetext")) === (await read()));
    }
  }
  await page.focus("#alibi-form");
  const form = (await settingsOf("alibi")).form;
  await page.keyboard.press("ArrowDown");
  await drawn();
  check("keyboard: an arrow chooses in a list", (await settingsOf("alibi")).form !== form);
  await page.focus("#attention-first");
  await page.keyboard.press("End");
  await page.keyboard.type(" twice");
  await drawn();
  check("keyboard: a sentence can be typed", (await settingsOf("attention")).first.endsWith(" twice"));
}

async function testWidths() {
  for (const width of [1280, 768, 390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    await drawn();
    const { wide, screen } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, screen: document.documentElement.clientWidth }));
    check(`width ${width}: nothing to scroll sideways`, wide <= screen, `${wide} > ${screen}`);
  }
}

async function takeScreenshots() {
  const fresh = await open(url);
  await fresh.emulateMedia({ reducedMotion: "reduce" });
  for (const [width, height] of [[1280, 900], [390, 844]])
    for (const scheme of ["light", "dark"]) {
      await fresh.setViewportSize({ width, height });
      await fresh.emulateMedia({ colorScheme: scheme });
      await fresh.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      for (const panel of ["header", "#waves", "#attention", "#rope", "#alibi", "#angles"])
        await fresh.locator(panel).screenshot({ path: join(build, `${panel.replace("#", "")}-${width}-${scheme}.png`) });
    }
  await fresh.close();
}

async function testOverHttp() {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { "content-type": "text/html" }).end(readFileSync(pageFile));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const served = await open(`http://127.0.0.1:${server.address().port}/`);
  await served.waitForTimeout(300);
  await served.close();
  server.close();
  check("network: served, the page is asked for and nothing else", asked.join() === "/", asked.join());
}

try {
  const bytes = statSync(pageFile).size;
  check("the page is below 400 KB", bytes < 400 * 1024, bytes);
  for (const test of [testWaves, testAttention, testRope, testAlibi, testAngles, testMotion, testKeyboard, testWidths, takeScreenshots]) await test();
  check("network: opened from disk, the page loads nothing", requests.every((asked) => asked === url), requests.filter((asked) => asked !== url).join());
  await testOverHttp();
  check("no error and no warning in the console", complaints.length === 0, complaints.join(" | "));
  console.log(`page: ${bytes} bytes; numbers compared: ${compared}; screenshots in ${build}`);
} catch (error) {
  check("the test came to its end", false, error.stack);
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
