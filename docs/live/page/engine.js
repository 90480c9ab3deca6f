// The headers, compiled to WebAssembly: what each function gives is in docs/live/live.hpp.

async function loadEngine() {
  const encoded = document.getElementById("module").textContent;
  const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));

  let exports = null;
  let said = "";
  // The module opens no file; it only says what was wrong before it ends.
  const system = {
    emscripten_notify_memory_growth() {},
    proc_exit(code) {
      throw new Error(said || `exit code ${code}`);
    },
    fd_close: () => 0,
    fd_seek: () => 0,
    fd_write(file, vectors, count, written) {
      const memory = new DataView(exports.memory.buffer);
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const from = memory.getUint32(vectors + 8 * i, true);
        const length = memory.getUint32(vectors + 8 * i + 4, true);
        said += new TextDecoder().decode(new Uint8Array(exports.memory.buffer, from, length));
        total += length;
      }
      memory.setUint32(written, total, true);
      return 0;
    },
  };
  const { instance } = await WebAssembly.instantiate(bytes, { env: system, wasi_snapshot_preview1: system });
  exports = instance.exports;
  exports._initialize();

  /** The numbers that a function leaves, as a copy. */
  function call(name, ...args) {
    said = "";
    let count = 0;
    try {
      count = exports[`live_${name}`](...args);
    } catch (error) {
      throw new Error(said.trim() || String(error));
    }
    return new Float64Array(exports.memory.buffer, exports.live_values(), count).slice();
  }

  /** The same for two texts. */
  function callWithTexts(name, first, second) {
    const a = new TextEncoder().encode(first);
    const b = new TextEncoder().encode(second);
    const at = exports.live_text(a.length + b.length);
    const room = new Uint8Array(exports.memory.buffer, at, a.length + b.length);
    room.set(a);
    room.set(b, a.length);
    return call(name, a.length, b.length);
  }

  return { call, callWithTexts };
}
