// The state in the page's address, behind #, so that a link or a reload comes back to what was
// seen. Parts of the address that are not of this page (a live page has its own) stay as they are.

const WORDS = {
  // part of the state that is one of a few words, and the words
  side: () => ["query", "key"],
  stage: () => ["normalised", "as in the model"],
  thumbs: () => ["attention", "joint space"],
  between: () => BETWEEN(),
  colour: () => ["query and key", "position"],
  sort: () => Object.keys(SORTS),
  only: () => Object.keys(ONLY),
  layer: () => ["all layers", ...d3.range(L).map(layer => `layer ${layer}`)],
  kind: () => [ANY, ...Object.values(KINDS).map(kind => kind[2])],
  guess: () => NTH.slice(0, made.classes ? made.classes.length : NTH.length),
  written: () => WRITTEN.filter(([, name]) => !name || made.writes[name]).map(([word]) => word),
  way: () => Object.keys(WAYS),
  chance: () => OF,
  view: () => Object.keys(VIEWS),
  told: () => TOLD,
  rows: () => ["told", "all"],
  step: () => [
    ...Object.keys(STEPS),
    ...["attention", "source", "mlp"].flatMap(x => [`norm-${x}`, `add-${x}`]),
  ],
  part: () => Object.keys(partsOf(page.runs[runNumber()])),
};
// parts that are numbers, or a word in place of one
const NUMBERS = ["token", "run", "heads", "mlp", "walk", "partner", "pushed"];
// a saved page keeps what was seen
const addressed = () => new URLSearchParams(location.hash.slice(1) || page.view || "");
const usual = {...state}; // what the address need not say
let writing;
let kept;
export let isNewStep = false; // what was written last; whether the next is a step of its own

function fromAddress() {
  // what the address says of the state; what makes no sense is left out
  const given = addressed(),
    changes = {};
  for (const [name, words] of Object.entries(WORDS)) {
    if (words().includes(given.get(name))) changes[name] = given.get(name);
  }
  const head = /^L(\d+)H(\d+)$/.exec(given.get("head") ?? ""),
    token = given.get("token") ?? "",
    run = given.get("run");
  if (head && +head[1] < L && +head[2] < H) changes.head = head[1] * H + +head[2];
  if (/^\d+$/.test(token)) changes.token = +token;
  if (/^\d+$/.test(given.get("mlp") ?? "")) changes.mlp = Math.min(+given.get("mlp"), L - 1);
  for (const name of ["partner", "pushed"])
    if (/^\d+$/.test(given.get(name) ?? "")) changes[name] = +given.get(name);
  if (/^\d{1,2}$/.test(given.get("walk") ?? "")) changes.walk = +given.get("walk");
  if (/^\d+(,\d+)*$/.test(given.get("heads") ?? "")) changes.heads = given.get("heads");
  if (TOLD.includes(changes.view)) changes.told = changes.view;
  if (run === "difference" || /^\d$/.test(run ?? ""))
    changes.run = run === "difference" ? run : +run;
  if (["dark", "light"].includes(given.get("theme"))) changes.dark = given.get("theme") === "dark";
  return changes;
}

function toAddress() {
  if (kept === JSON.stringify(state)) return; // drawn anew, and nothing was chosen
  kept = JSON.stringify(state);
  const given = new URLSearchParams(location.hash.slice(1));
  const put = (name, value) => (value === null ? given.delete(name) : given.set(name, value));
  for (const name of [...Object.keys(WORDS), ...NUMBERS]) {
    const first = name === "part" ? WORDS.part()[0] : usual[name];
    put(name, state[name] === first ? null : state[name]);
  }
  put("head", nameOf(state.head));
  put("theme", state.dark === null ? null : state.dark ? "dark" : "light");
  const isNew = isNewStep && `#${given}` !== location.hash && location.hash !== "";
  isNewStep = false;
  try {
    history[isNew ? "pushState" : "replaceState"](null, "", `#${given}`);
  } catch {} // a notebook's frame has no address of its own
}

function viewed() {
  // the state as the address has it, without what else stands there
  toAddress();
  const given = new URLSearchParams(location.hash.slice(1)),
    own = [...Object.keys(WORDS), ...NUMBERS, "head", "theme"];
  return `${new URLSearchParams([...given].filter(([name]) => own.includes(name)))}`;
}

let chosenAt = -Infinity;

function keepChoice() {
  // at once; what follows within the time, as an arrow key that is held down, is the same step, and
  // written later
  const isFirst = performance.now() - chosenAt > QUIET;
  chosenAt = performance.now();
  if (isFirst) toAddress();
}

const QUIET = 200; // milliseconds

function keepAddress() {
  // soon: browsers refuse too many changes in a short time
  clearTimeout(writing);
  writing = setTimeout(toAddress, QUIET);
}

addEventListener("DOMContentLoaded", toAddress); // before anybody can write another one
addEventListener("popstate", () => {
  // Back, Forward, and an address that is typed
  clearTimeout(writing); // it would be written over the step that came back
  const {run = 0, part = WORDS.part()[0]} = fromAddress();
  set({run, part}, false); // heads are counted in the part that is there
  set({...usual, head: state.head, part: state.part, ...fromAddress()}, false);
  unfoldChosen();
  kept = null;
});

export {addressed, fromAddress, keepAddress, keepChoice, viewed, WORDS};
