// What the overview says of each box, with numbers of this text. The example is the chosen query i,
// else the one whose largest weight is largest; j is its strongest key, n the number of its token.

const two = x => minus(x.toFixed(2).replace(/^-(0.00)$/, "$1"));
const query = i => `“${isolated(labels.query[i])}” (${i})`;
const key = j => `“${isolated(labels.key[j])}” (${j})`;
const token = n => `“${isolated(made.labels[n])}” (${n})`;

function example() {
  const chosen = isQuery() && state.token < T ? state.token : null;
  const i =
    chosen ??
    d3.greatest(places.query.slice(data.causal ? 1 : 0), n => at(n, strongestKey(n))) ??
    0;
  return {i, j: strongestKey(i), n: Math.max(0, made.word.indexOf(i))};
}

// softmax, read backwards
const score = (i, j) => Math.log(Math.max(at(i, j), 1e-30)) + total[state.head * T + i];
const strongest = i => d3.sort(places.key, j => -at(i, j)).slice(0, 3);
const lengthAfter = (layers, n) => two(made.stream[layers * made.labels.length + n]);
const lengthWritten = (name, n) =>
  two(made.writes[name][layerOf(state.head) * made.labels.length + n]);

function nextBest(i, j) {
  const next = strongest(i).find(other => other !== j && !hidden(i, other));
  return next === undefined ? "" : say`; with the next best, ${key(next)}: ${two(score(i, next))}`;
}

const lookedUp = (_, {d_model: D, n_vocab: V}) =>
  data.picture
    ? say`The ${data.picture.numbers} numbers of each patch, its pixels, go through a table to a vector of ${D} numbers.`
    : say`Each token is looked up in a table of ${V} rows: its vector of ${D} numbers.`;

const ELSEWHERE = {
  // how a token's place enters where there is no table of positions
  rotary: say(
    "No row for its position is added: heads turn queries and keys by an angle that grows with the position.",
  ),
  buckets: say("No row for its position is added: scores get a number for the distance."),
  alibi: say("No row for its position is added: scores fall with the distance."),
  disentangled: say("No row for its position is added: scores get terms for the distance."),
};

function positioned({n}, {mechanisms}) {
  const {embed, pos_embed: position} = made.rows;
  if (position)
    return say`The row of its position in a second table is added: at ${token(n)} one of length ${two(position[n])} to one of length ${two(embed[n])}.`;
  return (
    ELSEWHERE[mechanisms[0]] ??
    say("No row for its position is added, and no score knows the distance.")
  );
}

const STEPS = {
  embed: (of, {d_model: D, ...sizes}) =>
    `${lookedUp(of, {d_model: D, ...sizes})} ${positioned(of, sizes)} ` +
    say`${query(of.i)} begins as a vector of length ${lengthAfter(0, of.n)}. Together they are ${by(T, D)} numbers, the residual ` +
    say("stream."),
  layer: ({n}, {d_model: D}) =>
    say`A layer reads the stream, ${by(T, D)}, and adds to it twice: what attention brings from other tokens, then what the ` +
    say`MLP makes of each token by itself. After layer ${layerOf(state.head)} the vector of ${token(n)} has length ${lengthAfter(layerOf(state.head) + 1, n)}.`,
  norm: (_, {rms_norm, pre_norm}) =>
    say`The norm ${
      rms_norm
        ? say("scales each token's vector to the same root mean square")
        : say("moves each token's vector to mean 0 and scales it to spread 1")
    }, then multiplies by weights that were learned. ` +
    (pre_norm
      ? say("It stands before what reads the stream.")
      : say("In this family it stands after each addition.")),
  attention: ({i, j}) =>
    say`Each of ${H} heads mixes the vectors of tokens by weights of its own, ${by(T, S)} numbers. In ` +
    say`${nameOf(state.head)}, ${query(i)} gives most, ${two(at(i, j))}, to ${key(j)}. Nowhere else do tokens exchange ` +
    say("anything."),
  source: ({i, j}) =>
    say(
      "The decoder's tokens look at those of the source: queries come from the decoder, keys and values from the encoder.",
    ) +
    (isCross
      ? say` In ${nameOf(state.head)}, ${query(i)} gives most, ${two(at(i, j))}, to ${key(j)}.`
      : ""),
  mlp: ({n}, {d_model: D, d_mlp: M, act}) =>
    say`Each token by itself goes from ${D} numbers to ${M}, each through the function ${act}, and back. In layer ${layerOf(state.head)} this ` +
    say`adds a vector of length ${lengthWritten("mlp_out", n)} at ${token(n)}.`,
  add: ({n}) =>
    say(
      "What was computed is added to the stream, so nothing is overwritten. Before this layer the vector of ",
    ) + say`${token(n)} has length ${lengthAfter(layerOf(state.head), n)}.`,
  unembed: ({n}, {d_model: D, n_vocab: V, task_head}) =>
    made.guesses && isOfWords()
      ? say`Each vector is multiplied by a table of ${by(D, V)}: a score for each of ${V} tokens, and by softmax a ` +
        say`probability. At ${token(n)} the likeliest is “${guessesAt(n)[0].piece}”, ${percent(guessesAt(n)[0].p)}.`
      : say`The stream ends as ${by(T, D)} numbers. ${
          state.part === "encoder"
            ? say("The decoder reads them.")
            : made.guesses || (data.picture && made.classes)
              ? say("A classifier reads it.")
              : task_head === "sequence"
                ? say("A classifier reads one token of it.")
                : say("This model has no table that turns it into guesses.")
        }`,
  q: ({i}, {d_model: D}) =>
    say`What a token asks is its vector X, ${D} numbers, times W_Q, ${by(D, data.width)}: its query, ${data.width} numbers. ` +
    say`All ${T} tokens: ${by(T, D)} times ${by(D, data.width)} gives ${by(T, data.width)}. The example is ${query(i)}.`,
  k: ({j}, {d_model: D}) =>
    say`What a token answers to is its vector times W_K, ${by(D, data.width)}: its key. The key of ${key(j)} fits the ` +
    say("example's query best."),
  scores: ({i, j}, {scaled, by_distance}) =>
    say`How well each key fits each query: ${by(T, data.width)} times ${by(data.width, S)} gives ${by(T, S)} scores${scaled ? say`, divided by √${data.width}` : ""}.` +
    `${by_distance ? say(" A number for the distance is added.") : ""} ` +
    say`Query ${query(i)} with key ${key(j)}: ${two(score(i, j))}${nextBest(i, j)}.`,
  softmax: ({i, j}) =>
    say(
      "Softmax turns scores into weights that add up to 1 in each row: e to the score, over the sum of the row. ",
    ) +
    say`e^${two(score(i, j))} / e^${two(total[state.head * T + i])} = ${two(at(i, j))}, the weight of ${key(j)} for ${query(i)}.`,
  v: ({j}, {d_model: D}) =>
    say`What a token has to give is its vector times W_V, ${by(D, data.width)}: its value. That of ${key(j)} has length ${two(lengthOf(j))}.`,
  mix: ({i}) =>
    say`Each query takes every value times its weight, and adds them up: ${by(T, S)} times ${by(S, data.width)} gives ` +
    say`${by(T, data.width)}. ${query(i)} takes ${strongest(i)
      .map(j => say`${two(at(i, j))} of ${key(j)}`)
      .join(", ")} …`,
  join: ({n}, {d_model: D}) =>
    say`The mixtures of all ${H} heads side by side, ${by(H, data.width)} numbers for each token, times W_O give ${by(T, D)}, ` +
    say`which is added to the stream: at ${token(n)} a vector of length ${lengthWritten(isCross ? "cross_out" : "attn_out", n)}.`,
};

function explained(step) {
  const kind = step.replace(/^(layer|norm|add).*/, "$1");
  return STEPS[kind](example(), run().sizes);
}

const firstSentence = step => explained(step).split(/(?<=\.) /)[0];

export {
  example,
  explained,
  firstSentence,
  key,
  lengthAfter,
  lookedUp,
  positioned,
  query,
  STEPS,
  token,
  two,
};
