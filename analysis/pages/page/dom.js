// Elements of the page: one by its id, and a new one.

const byId = id => document.getElementById(id);

function make(tag, properties = {}, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// large type, one picture at a time: ?projector in the address
const isProjected = new URLSearchParams(location.search).has("projector");
document.documentElement.classList.toggle("projector", isProjected);

export {byId, isProjected, make};
