// The language of the page: a text in English is the key of its translation, which a page in
// another language brings along. say`… ${x} …` is looked up as "… {0} …", say(label) also with #
// for its numbers.

const TRANSLATIONS = JSON.parse(document.getElementById("translations")?.textContent || "{}");

// a right-to-left word keeps its side of the signs beside it: U+2068 and U+2069 isolate it
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const isolated = text => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

function say(text, ...values) {
  if (typeof text === "string") return TRANSLATIONS[text] ?? labelled(text);
  const key = text.reduce((all, part, n) => `${all}{${n - 1}}${part}`);
  return (TRANSLATIONS[key] ?? key).replace(/\{(\d+)\}/g, (_, n) => isolated(values[n]));
}

function labelled(text) {
  const numbers = text.match(/\d+/g) ?? [],
    known = TRANSLATIONS[text.replace(/\d+/g, "#")];
  return known ? known.replace(/#/g, () => numbers.shift()) : text;
}

export {isolated, say};
