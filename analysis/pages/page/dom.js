// Elements of the page: one by its id, and a new one.

const byId = id => document.getElementById(id);

function make(tag, properties = {}, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export {byId, make};
