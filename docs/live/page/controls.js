// Controls: native inputs, and the values that they stand for. A logarithmic slider moves an exponent; its value is
// rounded to three digits, so that what is shown is what is computed.

const digits3 = (value) => Number(value.toPrecision(3));

const byId = (id) => document.getElementById(id);

/**
 * A slider whose value is to(x) at the slider's x, and which can be set to any value in between: from(value) = x.
 * `show` writes the value.
 */
function slider(id, { to = (x) => x, from = (v) => v, show = (v) => String(v), changed }) {
  const input = byId(id), output = byId(`${id}-value`);
  const control = {
    value: to(Number(input.value)),
    input,
    set(value) {
      control.value = value;
      input.value = String(from(value));
      control.write();
    },
    write() {
      const text = show(control.value);
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    },
  };
  input.addEventListener("input", () => {
    control.value = to(Number(input.value));
    control.write();
    changed();
  });
  control.write();
  return control;
}

function powerSlider(id, base, { rounded = digits3, show = (v) => (v < 1000 ? String(v) : grouped(v)), changed }) {
  return slider(id, {
    to: (x) => rounded(base ** x),
    from: (v) => Math.log(v) / Math.log(base),
    show,
    changed,
  });
}

function choice(id, changed) {
  const input = byId(id);
  input.addEventListener("change", changed);
  return {
    input,
    get value() {
      return input.value;
    },
    set(value) {
      input.value = String(value);
    },
  };
}

/** Runs `work` once before the next picture, however often it was asked for. */
function beforeNextPicture(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}
