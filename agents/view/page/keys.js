// Keys and buttons around the panel: `/` looks for a text, arrows move along the requests, End shows the newest.

import { byId, fill } from "./dom.js";
import { PANELS } from "./panels.js";

const LOOKS = { auto: "◐", dark: "●", light: "○" };

export function listen({ go, stepBy, tab }) {
  byId("before").addEventListener("click", () => stepBy(-1));
  byId("after").addEventListener("click", () => stepBy(1));
  byId("now").addEventListener("click", () => go({ at: null }));
  byId("agent").addEventListener("change", (event) => go({ agent: event.target.value, at: null, text: "" }));
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    go({ tab: "trace", text: byId("find-text").value.trim() });
    byId("find-text").blur();
  });
  byId("page").addEventListener("click", (event) => {
    if (event.target === byId("page")) byId("page").close();
  });
  addEventListener("keydown", (event) => pressed(event, { go, stepBy, tab }));
  dress(localStorage.getItem("look") || "auto");
  byId("theme").addEventListener("click", () => {
    const looks = Object.keys(LOOKS);
    const look = looks[(looks.indexOf(document.documentElement.dataset.look) + 1) % looks.length];
    localStorage.setItem("look", look);
    dress(look);
  });
}

function pressed(event, { go, stepBy, tab }) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    byId("find-text").select();
    byId("find-text").focus();
  } else if (event.key === "Escape" && event.target === byId("find-text")) {
    event.target.blur();
  } else if (typing || byId("page").open) {
    return;
  } else if (event.target.closest("[role=tablist]") && event.key.startsWith("Arrow")) {
    const tabs = Object.keys(PANELS);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step) go({ tab: tabs[(tabs.indexOf(tab()) + step + tabs.length) % tabs.length] });
    byId(`tab-${tab()}`)?.focus();
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    stepBy(event.key === "ArrowLeft" ? -1 : 1);
  } else if (event.key === "End") {
    go({ at: null });
  }
}

function dress(look) {
  document.documentElement.dataset.look = look;
  fill(byId("theme"), LOOKS[look]);
  byId("theme").title = `${look[0].toUpperCase()}${look.slice(1)}: click for another look`;
}
