// The definition of an angle, cos(p f) and sin(p f), by integers of any size: written for this page, and
// sharing nothing with the headers that it checks. Numbers are fixed point, value = integer / 2^bits.

const definition = (() => {
  const angleBits = 256n; // for the product p f and its reduction
  const bits = 128n; // for the two series
  const one = 1n << bits;

  /** atan(1 / x) in fixed point. */
  function arctangentOfInverse(x, fraction) {
    let power = (1n << fraction) / x;
    let sum = power;
    for (let k = 3n, sign = -1n; power !== 0n; k += 2n, sign = -sign) {
      power /= x * x;
      sum += (sign * power) / k;
    }
    return sum;
  }
  // Machin: pi / 4 = 4 atan(1/5) - atan(1/239)
  const quarterTurn =
    (4n * (4n * arctangentOfInverse(5n, angleBits + 32n) - arctangentOfInverse(239n, angleBits + 32n))) >> 33n;

  /** A double is mantissa 2^exponent, exactly. */
  function parts(value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    const word = view.getBigUint64(0);
    const field = (word >> 52n) & 0x7ffn;
    const fraction = word & 0xfffffffffffffn;
    const mantissa = field === 0n ? fraction : fraction | (1n << 52n);
    return { mantissa: word >> 63n ? -mantissa : mantissa, exponent: (field === 0n ? 1n : field) - 1075n };
  }

  function fixed(value, fraction) {
    const { mantissa, exponent } = parts(value);
    const shift = fraction + exponent;
    return shift >= 0n ? mantissa << shift : mantissa >> -shift;
  }

  /** cos and sin of position x frequency, as fixed-point integers. position: an integer of at least 0. */
  function cosSin(position, frequency) {
    const angle = BigInt(position) * fixed(frequency, angleBits);
    const quarter = (angle + quarterTurn / 2n) / quarterTurn;
    const x = (angle - quarter * quarterTurn) >> (angleBits - bits); // an eighth of a turn to either side
    const square = (x * x) >> bits;
    let cosine = one, sine = x;
    for (let k = 1n, c = one, s = x; c !== 0n || s !== 0n; k += 2n) {
      c = (-(c * square) >> bits) / (k * (k + 1n));
      s = (-(s * square) >> bits) / ((k + 1n) * (k + 2n));
      cosine += c;
      sine += s;
    }
    const turned = Number(quarter & 3n);
    return [
      { cos: cosine, sin: sine },
      { cos: -sine, sin: cosine },
      { cos: -cosine, sin: -sine },
      { cos: sine, sin: -cosine },
    ][turned];
  }

  const number = (value) => Number(value) / 2 ** 128;
  /** |exact - approximation|, the difference taken before anything is rounded. */
  function error(exact, approximation) {
    const difference = exact - fixed(approximation, bits);
    return number(difference < 0n ? -difference : difference);
  }

  return { cosSin, number, error };
})();
