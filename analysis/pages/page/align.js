// Which tokens of two texts stand for each other, so that a difference is told of texts of unequal
// length.

function partners(before, after) {
  // of each token of `after` the number of its partner in `before`, -1 for none
  if (before.length === after.length) return [...after.keys()];
  const found = after.map(() => -1);
  let [i, j] = [0, 0];
  for (const [a, b] of [...common(before, after), [before.length, after.length]]) {
    // one word in another's place
    if (a - i === b - j) for (let n = 0; n < a - i; n++) found[j + n] = i + n;
    if (b < after.length) found[b] = a;
    [i, j] = [a + 1, b + 1];
  }
  return found;
}

function common(a, b) {
  // pairs of numbers of equal tokens in order, as many as there may be
  const width = b.length + 1,
    most = new Uint16Array((a.length + 1) * width),
    pairs = [];
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      most[here] =
        a[i] === b[j] ? most[here + width + 1] + 1 : Math.max(most[here + width], most[here + 1]);
    }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (most[(i + 1) * width + j] >= most[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
}

// a weight of the second run less that of its partners in the first; NaN where one text alone has
// the query or the key

function lessPattern(first, aligned) {
  const before = open(first).pattern,
    [t, s] = [first.labels, first.keys ?? first.labels].map(own => own.length);
  return pattern.map((weight, n) => {
    const i = aligned.query[Math.floor(n / S) % T],
      j = aligned.key[n % S];
    return i < 0 || j < 0 ? NaN : weight - before[(Math.floor(n / S / T) * t + i) * s + j];
  });
}

const lessProfile = first =>
  profile?.map((mean, n) => mean - meanAt(first, Math.floor(n / R), (n % R) - reach));

function meanAt(part, head, offset) {
  // mean attention to an offset; NaN for one beyond the reach of a short text
  const {length} = part.uniform,
    far = (length - 1) / 2;
  return Math.abs(offset) > far ? NaN : open(part).profile[head * length + offset + far];
}

const isAlone = (n, side) => isDifference() && differences(page.runs[0]).aligned[side][n] < 0;

export {isAlone, lessPattern, lessProfile, meanAt, partners};
