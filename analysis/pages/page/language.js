"use strict";
// The language of the page: a text in English is the key of its translation, which a page in another language brings
// along. say`… ${x} …` is looked up as "… {0} …", say(label) also with # for its numbers.

const TRANSLATIONS = JSON.parse(document.getElementById("translations")?.textContent || "{}");

function say(text, ...values) {
  if (typeof text === "string") return TRANSLATIONS[text] ?? labelled(text);
  const key = text.reduce((all, part, n) => `${all}{${n - 1}}${part}`);
  return (TRANSLATIONS[key] ?? key).replace(/\{(\d+)\}/g, (_, n) => values[n]);
}

function labelled(text) {
  const numbers = text.match(/\d+/g) ?? [], known = TRANSLATIONS[text.replace(/\d+/g, "#")];
  return known ? known.replace(/#/g, () => numbers.shift()) : text;
}
