// What is shown, as the address behind #: #agent/panel/step/text?name=value. It can be bookmarked and gone back to.
//
// Without an agent it is the list of all agents. `more` holds what belongs to one panel: filters, the page in the dialog,
// the request that is compared.

import { PANELS } from "./panels.js";

const SETTLED_MS = 250; // after the last of many steps; browsers bear only so many new addresses
export const here = { agent: null, tab: "request", at: null, text: "", more: {} };
let writing = 0;

function plainly(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

// Returns the name of an agent that is asked for and not there. Of very many `agents`, some are not known by name.
export function read(agents, more) {
  clearTimeout(writing);
  const [path, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const [agent, tab, at, ...text] = path.split("/").map(plainly);
  here.agent = agent && (more || agents.includes(agent)) ? agent : null;
  here.tab = Object.hasOwn(PANELS, tab) ? tab : "request";
  here.at = at && at !== "now" ? at : null;
  here.text = text.join("/");
  here.more = Object.fromEntries(new URLSearchParams(query));
  return here.agent ? "" : agent;
}

function hash() {
  if (!here.agent) return "#";
  const parts = [here.agent, here.tab, here.at || "now", ...(here.text ? [here.text] : [])];
  const more = new URLSearchParams(Object.entries(here.more).filter(([, value]) => value)).toString();
  return `#${parts.map(encodeURIComponent).join("/")}${more ? `?${more}` : ""}`;
}

// Write the address: as a new entry of the browser's history, or in place of the newest.
export function write(isNew) {
  clearTimeout(writing);
  const now = hash();
  if (location.hash === now || (now === "#" && !location.hash)) return;
  if (isNew) history.pushState(null, "", now);
  else history.replaceState(null, "", now);
}

export function writeSoon() {
  clearTimeout(writing);
  writing = setTimeout(() => write(false), SETTLED_MS);
}

// Change what belongs to the panel, and nothing that is drawn. A value of null or "" is left out.
export function note(changes, isNew = false) {
  here.more = { ...here.more, ...changes };
  write(isNew);
}
