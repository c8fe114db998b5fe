"use strict";
// Kinds of heads: what a head looks at on random words that occur twice, if that is clearly beyond chance. They are of
// the model as it is. A live page brings them later, by the model's name.

const KINDS = {induction: ["I", say("the token after the first occurrence of its own"), "induction heads"],
               duplicate: ["D", say("the first occurrence of its own token"), "duplicate heads"],
               previous: ["P", say("the token before"), "previous heads"],
               next: ["N", say("the token after it"), "next heads"],
               first: ["F", say("the first token of the text"), "first heads"],
               itself: ["S", say("its own place"), "itself heads"]};
const ANY = "all kinds";
const lateKinds = {};  // model: {part: kinds}

function kindsHere() {  // {kind: {heads: {number: score}, null}} of the part that views read, or null
  return (current.kinds ?? lateKinds[current.model])?.[state.part] ?? null;
}

const kindsOf = head => Object.entries(kindsHere() ?? {}).filter(([, {heads}]) => head in heads);
const letters = head => kindsOf(head).map(([kind]) => KINDS[kind][0]).join("");

function kindsSaid(head) {  // in words: what kind of head it is, "" if of none
  const said = kindsOf(head).map(([kind, {heads, null: chance}]) => (
    say`one of the ${say(KINDS[kind][2])}: on random words ${heads[head].toFixed(2)} of its attention to ${KINDS[kind][1]}, by chance ${chance.toFixed(2)}`));
  return said.join("; ");
}

function kindsHint() {  // which letter in a picture is which kind
  if (isCross || !kindsHere()) return "";
  const there = Object.entries(kindsHere()).filter(([, {heads}]) => Object.keys(heads).length);
  if (!there.length) return say(" On random words that occur twice, no head is of a known kind.");
  const named = there.map(([kind]) => `<b>${KINDS[kind][0]}</b> ${say(KINDS[kind][2])}`).join(", ");
  return say` Letters: what a head does on random words that occur twice, clearly more than by chance: ${named}.`;
}

const isKind = head => state.kind === ANY || kindsOf(head).some(([kind]) => KINDS[kind][2] === state.kind);

function learnKinds(model, kinds) {  // a live page has asked for them
  lateKinds[model] = kinds;
  version++;
  update();
}
