// Kinds of heads: what a head looks at on random words that occur twice, if that is clearly beyond
// chance. They are of the model as it is. A live page brings them later, by the model's name.

const KINDS = {
  induction: ["I", say("the token after the first occurrence of its own"), "induction heads"],
  duplicate: ["D", say("the first occurrence of its own token"), "duplicate heads"],
  previous: ["P", say("the token before"), "previous heads"],
  next: ["N", say("the token after it"), "next heads"],
  first: ["F", say("the first token of the text"), "first heads"],
  itself: ["S", say("its own place"), "heads that look at their own token"],
};
const ANY = "all kinds";
const lateKinds = {}; // model: {part: kinds}

function kindsHere() {
  // {kind: {heads: {number: score}, null}} of the part that views read, or null
  return (current.kinds ?? lateKinds[current.model])?.[state.part] ?? null;
}

const kindsOf = head => Object.entries(kindsHere() ?? {}).filter(([, {heads}]) => head in heads);
// kinds that look at an offset: their heads have its number as a mark
const OFFSETS = {previous: -1, itself: 0, next: 1};
const letters = head =>
  kindsOf(head)
    .filter(([kind]) => !(kind in OFFSETS))
    .map(([kind]) => KINDS[kind][0])
    .join("");
const marks = head => letters(head) || ownOffset(head);
const isSaid = (head, kind) =>
  // by looksAt
  hasOffsets && !isDifference() && OFFSETS[kind] === peakOf(head) && aboveChance(head);

function kindsSaid(head) {
  // in words: what kind of head it is, "" if of none
  const said = kindsOf(head)
    .filter(([kind]) => !isSaid(head, kind))
    .map(
      ([kind, {heads, null: chance}]) =>
        say`one of the ${say(KINDS[kind][2])}: on random words on average ${percent(heads[head])} of its attention goes to ${KINDS[kind][1]} (chance ${percent(chance)})`,
    );
  return said.join("; ");
}

function marksHint() {
  // what numbers and letters in the pictures stand for
  const isMarked = d3.range(L * H).some(ownOffset);
  return (
    (isMarked
      ? say(
          " Numbers: the offset that gets half of a head's attention or more, such as −1, the token before.",
        )
      : "") + lettersHint()
  );
}

function lettersHint() {
  if (isCross || !kindsHere()) return "";
  const there = Object.entries(kindsHere()).filter(([, {heads}]) => Object.keys(heads).length);
  if (!there.length) return say(" On random words that occur twice, no head is of a known kind.");
  const named = there
    .filter(([kind]) => !(kind in OFFSETS))
    .map(([kind]) => `<b>${KINDS[kind][0]}</b> ${say(KINDS[kind][2])}`)
    .join(", ");
  if (!named) return "";
  return say` Letters: what a head does on random words that occur twice, clearly more than by chance: ${named}.`;
}

const isKind = head =>
  state.kind === ANY || kindsOf(head).some(([kind]) => KINDS[kind][2] === state.kind);

function learnKinds(model, kinds) {
  // a live page has asked for them
  lateKinds[model] = kinds;
  version++;
  update();
}

export {ANY, isKind, isSaid, KINDS, kindsOf, kindsSaid, learnKinds, marks, marksHint};
