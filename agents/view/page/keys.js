// Keys and buttons around the panel. `?` shows them all.

import { here } from "./address.js";
import { byId, el, fill } from "./dom.js";
import { PANELS } from "./panels.js";

const LOOKS = { auto: "◐", dark: "●", light: "○" };
const ZOOM = 1.6;
const KEYS = [
  [["←", "→"], "the request before, the next one"],
  [["Home", "End"], "the first request, now"],
  [["+", "−"], "fewer or more requests in the chart; with Ctrl the wheel does it, too"],
  [["Shift", "click"], "on a column: compare that request with the one that is shown"],
  [["/"], "trace a text, or a page such as f12"],
  [["1", "…", "9"], "the tabs"],
  [["0"], "all agents"],
  [["Esc"], "close what is open"],
  [["?"], "this list"],
];

export function listen({ go, stepBy, zoom, closed }) {
  byId("before").addEventListener("click", () => stepBy(-1));
  byId("after").addEventListener("click", () => stepBy(1));
  byId("now").addEventListener("click", () => go({ at: null }));
  byId("home").addEventListener("click", () => go(ALL));
  byId("agent").addEventListener("change", (event) => go({ agent: event.target.value || null, at: null, text: "" }));
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    if (here.agent) go({ tab: "trace", text: byId("find-text").value.trim() });
    byId("find-text").blur();
  });
  for (const dialog of [byId("page"), byId("keys")])
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
  byId("page").addEventListener("close", closed);
  byId("help").addEventListener("click", help);
  addEventListener("keydown", (event) => pressed(event, { go, stepBy, zoom }));
  dress(localStorage.getItem("look") || "auto");
  byId("theme").addEventListener("click", () => {
    const looks = Object.keys(LOOKS);
    const look = looks[(looks.indexOf(document.documentElement.dataset.look) + 1) % looks.length];
    localStorage.setItem("look", look);
    dress(look);
  });
}

const ALL = { agent: null, tab: "request", at: null, text: "" };

function pressed(event, { go, stepBy, zoom }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const acts = {
    "/": () => byId("find-text").select(),
    "?": help,
    ArrowLeft: () => stepBy(-1),
    ArrowRight: () => stepBy(1),
    Home: () => go({ at: "s1" }), // any step stands for the request after it
    End: () => go({ at: null }),
    "+": () => zoom(1 / ZOOM),
    "-": () => zoom(ZOOM),
    0: () => go(ALL),
  };
  const tab = Object.keys(PANELS)[Number(event.key) - 1];
  if (event.key === "Escape" && event.target === byId("find-text")) event.target.blur();
  else if (typing || document.querySelector("dialog[open]")) return;
  else if (event.target.closest("[role=tablist]") && event.key.startsWith("Arrow")) along(event.key, go);
  else if (tab && here.agent) go({ tab });
  else if (Object.hasOwn(acts, event.key) && (here.agent || event.key === "?")) {
    event.preventDefault();
    acts[event.key]();
  }
}

function along(key, go) {
  const tabs = Object.keys(PANELS);
  const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  if (step) go({ tab: tabs[(tabs.indexOf(here.tab) + step + tabs.length) % tabs.length] });
  byId(`tab-${here.tab}`)?.focus();
}

function help() {
  const dialog = byId("keys");
  const key = (name) => (name === "…" ? " … " : el("kbd", {}, name));
  const rows = KEYS.map(([names, does]) => [el("dt", {}, names.map(key)), el("dd", {}, does)]);
  fill(
    dialog,
    el(
      "div",
      { class: "head" },
      el("h2", { id: "keys-title" }, "Keys"),
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", on: { click: () => dialog.close() } }, "✕"),
    ),
    el("dl", { class: "keys" }, rows),
  );
  dialog.showModal();
}

function dress(look) {
  document.documentElement.dataset.look = look;
  fill(byId("theme"), LOOKS[look]);
  byId("theme").title = `${look[0].toUpperCase()}${look.slice(1)}: click for another look`;
}
