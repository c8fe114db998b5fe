// What the model makes of the text, token by token: what several views ask. Also where heads are
// shown of whole words these are of tokens; made.word says which token belongs to which word.

// near either end one digit more
const percent = p =>
  p > 0.9995 && p < 1
    ? "> 99.9%"
    : p > 0 && p < 0.0005
      ? "< 0.1%"
      : `${(100 * p).toFixed(p < 1 && (p < 0.1 || p >= 0.985) ? 1 : 0)}%`;
const isCausal = () => data.causal || isCross;
const isQuery = () => state.token !== null && (state.side === "query" || !isCross);
// what a click on token n chooses
const tokenOf = n => made.word[Math.min(n, made.word.length - 1)];
const isChosenToken = n => isQuery() && tokenOf(n) === state.token;
// the stream before the first layer, and after each
const stageName = l => (l === 0 ? "embed" : `L${l - 1}`);

// the token whose guess is shown
const placed = () => (isThere("guesses") && !data.picture ? guessPlace() : null);
const isMask = label => /^(<mask>|\[MASK\])$/.test(label);
// the guess is of a token that the model sees
const isItself = () => !isCausal() && !made.classes && !isMask(made.labels[shownToken()]);

// guesses are of tokens, not of their classes
const isOfWords = () => made.own.some(own => own !== null);

// classes of a whole text, in their order: {piece, p, guess: the rank by which the state names it}
function classGuesses() {
  const ranks = d3.rank(made.classes, p => -p);
  return made.classes.map((p, c) => ({
    piece: made.names?.[c] ?? say`class ${c}`,
    p,
    guess: NTH[ranks[c]],
  }));
}

function guessesAt(n, of = made.guesses, pieces = made.pieces) {
  // the likeliest tokens at token n: [{piece, p}]
  return d3.range(of.n).map(g => ({piece: pieces[of.pieces[n * of.n + g]], p: of.p[n * of.n + g]}));
}

export {
  classGuesses,
  guessesAt,
  isCausal,
  isChosenToken,
  isItself,
  isMask,
  isOfWords,
  isQuery,
  percent,
  placed,
  stageName,
  tokenOf,
};
