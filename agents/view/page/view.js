// The page as a whole: which agent, which request, which panel; the keys; looking again when something was committed.
//
// Where one is stands in the address behind #: #agent/panel/step/text. So it can be kept, and gone back to.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { byId, el, empty, fill } from "./dom.js";
import { refused, waiting } from "./edits.js";
import { openPage } from "./page.js";
import { PANELS } from "./panels.js";
import { columnsAround, drawWindow } from "./window.js";

const LOOK_MS = 1000;
const REST = 25; // times as long as a look took
const here = { agent: null, tab: "request", at: null, text: "" };
const known = { agents: [], readOnly: false, now: null, revision: null, list: null, turn: 0 };
const chart = new Chart(byId("chart"), { choose: (step) => go({ at: step }), older: (step) => go({ at: step }) });

// --- where one is

function plainly(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

function read() {
  const [agent, tab, at, ...text] = location.hash.slice(1).split("/").map(plainly);
  here.agent = known.agents.includes(agent) ? agent : known.agents[0] || null;
  here.tab = PANELS[tab] ? tab : "request";
  here.at = at && at !== "now" ? at : null;
  here.text = text.join("/");
}

function go(changes) {
  const to = { ...here, ...changes };
  const parts = [to.agent, to.tab, to.at || "now", ...(to.text ? [to.text] : [])];
  const hash = `#${parts.map(encodeURIComponent).join("/")}`;
  if (location.hash === hash) arrive();
  else location.hash = hash;
}

async function arrive() {
  const before = { ...here };
  read();
  byId("agent").value = here.agent || "";
  document.title = here.agent ? `${here.agent} · selfpager` : "selfpager";
  if (!here.agent) {
    fill(
      byId("panel"),
      empty(
        "There are no agents here yet.",
        "Make one: ",
        el("code", {}, "selfpager demo"),
        " or ",
        el("code", {}, "selfpager chat AGENT.yaml"),
        ", then load this page again.",
      ),
    );
    return;
  }
  if (before.agent !== here.agent) known.revision = null;
  drawTabs();
  if (document.activeElement !== byId("find-text")) byId("find-text").value = here.text;
  const same =
    before.agent === here.agent &&
    before.tab === here.tab &&
    before.text === here.text &&
    byId("panel").hasChildNodes();
  await Promise.all([look(), same && !PANELS[here.tab].at ? null : panel(!same)]);
}

// --- the window

async function look() {
  const { agent, at } = here;
  try {
    const [now, told] = await Promise.all([api.get(agent, "now", { at }), columnsAround(agent, at, chart.room())]);
    if (agent !== here.agent || at !== here.at) return;
    known.now = now;
    if (now.at && now.at !== here.at) {
      // any step stands for the request after it
      here.at = now.at;
      history.replaceState(null, "", location.hash.replace(`/${at}`, `/${now.at}`));
    }
    drawWindow(chart, now, told);
  } catch (error) {
    if (agent === here.agent) toast(error.message, true);
  }
}

function stepBy(direction) {
  const { now } = known;
  if (!now) return;
  if (direction < 0 && now.before) go({ at: now.before });
  if (direction > 0 && now.at) go({ at: now.after });
}

// --- panels

function drawTabs() {
  fill(
    byId("tabs"),
    Object.entries(PANELS).map(([tab, { name, tier }]) =>
      el(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${tab}`,
          "aria-selected": String(tab === here.tab),
          "aria-controls": "panel",
          tabindex: tab === here.tab ? "0" : "-1",
          class: tier || "",
          on: { click: () => go({ tab }) },
        },
        name,
      ),
    ),
  );
  byId(`tab-${here.tab}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  byId("panel").setAttribute("aria-labelledby", `tab-${here.tab}`);
}

function context() {
  const turn = known.turn;
  const { agent, at, text } = here;
  return {
    agent,
    at,
    text,
    readOnly: known.readOnly,
    go,
    refresh: () => panel(false),
    current: () => turn === known.turn,
    get: (what, query) => api.get(agent, what, query),
    open: (page) => openPage(byId("page"), page, context()).catch((error) => toast(error.message, true)),
    edit: (kind, values) => edit(agent, kind, values),
  };
}

async function panel(fresh) {
  const root = byId("panel");
  try {
    if (!fresh && known.list) {
      await known.list.again();
      return;
    }
    known.turn += 1;
    const ctx = context();
    if (fresh) {
      known.list?.close();
      known.list = null;
      root.className = `panel ${here.tab}`;
      fill(root);
      delete root.dataset.text;
    }
    const drawn = await PANELS[here.tab].draw(root, ctx);
    if (ctx.current() && drawn?.again) {
      known.list = drawn;
      await drawn.again();
    }
  } catch (error) {
    fill(root, empty("This cannot be shown.", error.message));
  }
}

async function edit(agent, kind, values) {
  try {
    const done = await api.edit(agent, kind, values);
    const left =
      kind === "message"
        ? "Left for the agent: taken at its next step, or when it is next started."
        : "Left for the process that runs the agent: taken at its next step.";
    toast({ done: "Done.", refused: `Refused: ${done.text}`, pending: left }[done.state], done.state === "refused");
    await beat();
    return done;
  } catch (error) {
    toast(error.message, true);
    throw error;
  }
}

let hiding = 0;

function toast(text, bad = false) {
  const box = byId("toast");
  fill(box, text);
  box.className = bad ? "toast bad shown" : "toast shown";
  clearTimeout(hiding);
  hiding = setTimeout(() => box.classList.remove("shown"), bad ? 8000 : 4000);
}

// --- live

async function beat() {
  if (!here.agent || document.hidden) return;
  const { agent } = here;
  try {
    const told = await api.get(agent, "state");
    if (agent !== here.agent) return;
    const pill = byId("runner");
    pill.className = told.running ? "pill live" : "pill";
    fill(
      pill,
      told.running
        ? `running, process ${told.running.pid}`
        : known.readOnly
          ? "not running · read-only"
          : "not running",
    );
    waiting(byId("waiting"), told.waiting, told.running);
    refused(byId("refused"), told.refused);
    const changed = known.revision !== null && known.revision !== told.revision;
    known.revision = told.revision;
    if (changed) await Promise.all([look(), panel(false)]);
  } catch (error) {
    fill(byId("runner"), "no answer");
    byId("runner").className = "pill bad";
  }
}

// Who looks takes a small share of the time, however busy the agent is: the next look waits many times the last one.
async function pulse() {
  const began = performance.now();
  await beat();
  setTimeout(pulse, Math.max(LOOK_MS, REST * (performance.now() - began)));
}

// --- keys

function keys(event) {
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
    if (step) go({ tab: tabs[(tabs.indexOf(here.tab) + step + tabs.length) % tabs.length] });
    setTimeout(() => byId(`tab-${here.tab}`)?.focus(), 30);
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    stepBy(event.key === "ArrowLeft" ? -1 : 1);
  } else if (event.key === "End") {
    go({ at: null });
  }
}

const LOOKS = ["auto", "dark", "light"];

function dress(look) {
  document.documentElement.dataset.look = look;
  fill(byId("theme"), { auto: "◐", dark: "●", light: "○" }[look]);
  byId("theme").title = `${look[0].toUpperCase()}${look.slice(1)}: click for another look`;
}

async function start() {
  dress(localStorage.getItem("look") || "auto");
  byId("theme").addEventListener("click", () => {
    const look = LOOKS[(LOOKS.indexOf(document.documentElement.dataset.look) + 1) % LOOKS.length];
    localStorage.setItem("look", look);
    dress(look);
  });
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
  addEventListener("keydown", keys);
  addEventListener("hashchange", arrive);
  document.addEventListener("visibilitychange", beat);
  const told = await api.agents();
  Object.assign(known, { agents: told.agents, readOnly: told.read_only });
  fill(
    byId("agent"),
    told.agents.map((name) => el("option", { value: name }, name)),
  );
  await arrive();
  document.body.dataset.ready = "yes";
  pulse();
}

start().catch((error) => toast(error.message, true));
