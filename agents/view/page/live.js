// The present state: the agents, the process that runs this one, its pending commands, whether the server answers.

import * as api from "./api.js";
import { byId, el, fill, runner } from "./dom.js";
import { refused, waiting } from "./edits.js";

const SHORT_MS = 4_000;
const LONG_MS = 8_000;
let hiding = 0;

export const state = (agent) => api.get(agent, "state");

// A deleted agent stays in the list as long as the page shows it.
export function drawAgents(names, shown) {
  const gone = shown && !names.includes(shown) ? [shown] : [];
  fill(
    byId("agent"),
    el("option", { value: "" }, "All agents"),
    [...names, ...gone].map((name) => el("option", { value: name }, name)),
  );
  byId("agent").value = shown || "";
}

export function drawState(told, readOnly) {
  const { running } = told;
  byId("runner").className = running ? "pill live" : "pill";
  const rest = readOnly ? "not running · read-only" : "not running";
  const process = running && el("span", { class: "process" }, `, ${runner(running)}`);
  fill(byId("runner"), running ? ["running", process] : rest);
  waiting(byId("waiting"), told.waiting, running);
  refused(byId("refused"), told.refused);
}

export function drawTrouble(message) {
  const box = byId("trouble");
  box.hidden = !message;
  if (!message) return;
  if (box.textContent !== message) fill(box, message);
  fill(byId("runner"), "no answer");
  byId("runner").className = "pill bad";
}

export function toast(text, bad = false) {
  const box = byId("toast");
  fill(box, text);
  box.className = bad ? "toast bad shown" : "toast shown";
  clearTimeout(hiding);
  hiding = setTimeout(() => box.classList.remove("shown"), bad ? LONG_MS : SHORT_MS);
}
