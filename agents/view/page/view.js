// The page as a whole: the agent, the request and the panel that it shows. It reloads them after every commit.
//
// The address behind # holds what is shown, #agent/panel/step/text, so that it can be bookmarked and gone back to.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { byId, el, empty, fill } from "./dom.js";
import { listen } from "./keys.js";
import { drawAgents, drawState, drawTrouble, state, toast } from "./live.js";
import { openPage } from "./page.js";
import { PANELS } from "./panels.js";
import { columnsAround, drawWindow } from "./window.js";

const LOOK_MS = 1000;
const REST = 25; // times as long as a look took
const SETTLED_MS = 250; // after the last of many steps; browsers bear only so many new addresses
const here = { agent: null, tab: "request", at: null, text: "" };
const known = { home: "", agents: [], readOnly: false, now: null, told: null, revision: null, list: null, turn: 0, trouble: "" };
const chart = new Chart(byId("chart"), { choose: (step) => go({ at: step }), older: (step) => go({ at: step }) });
let loading = { aim: "", busy: false, again: false };
let owed = 0; // steps that were asked for before it was known where they lead
let writing = 0;

// --- what is shown

function plainly(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

function read() {
  clearTimeout(writing);
  const [agent, tab, at, ...text] = location.hash.slice(1).split("/").map(plainly);
  here.agent = known.agents.includes(agent) ? agent : known.agents[0] || null;
  here.tab = Object.hasOwn(PANELS, tab) ? tab : "request";
  here.at = at && at !== "now" ? at : null;
  here.text = text.join("/");
}

function write(keep) {
  clearTimeout(writing);
  const parts = [here.agent, here.tab, here.at || "now", ...(here.text ? [here.text] : [])];
  const hash = `#${parts.map(encodeURIComponent).join("/")}`;
  if (location.hash !== hash) keep.call(history, null, "", hash);
}

function go(changes) {
  Object.assign(here, changes);
  owed = 0;
  write(history.pushState);
  return arrive();
}

// Another agent, tab or text draws the whole panel anew; another step only reloads it. Of many steps in quick
// succession only the newest is loaded, as soon as the previous load has ended.
async function arrive() {
  const aim = JSON.stringify([here.agent, here.tab, here.text]);
  let fresh = aim !== loading.aim || !byId("panel").hasChildNodes();
  frame();
  if (!here.agent) {
    loading = { aim: "", busy: false, again: false };
    fill(byId("panel"), noAgents());
    return;
  }
  if (!fresh && loading.busy) {
    loading.again = true;
    return;
  }
  const mine = { aim, busy: true, again: true };
  loading = mine;
  while (mine.again && mine === loading) {
    mine.again = false;
    await Promise.all([look(), fresh || PANELS[here.tab].at ? panel(fresh) : null]);
    fresh = false;
  }
  mine.busy = false;
}

function frame() {
  byId("agent").value = here.agent || "";
  document.title = here.agent ? `${here.agent} · selfpager` : "selfpager";
  document.body.classList.toggle("nobody", !here.agent);
  fill(byId("step"), here.at || "now");
  chart.select(here.at);
  drawTabs();
  if (document.activeElement !== byId("find-text")) byId("find-text").value = here.text;
}

function noAgents() {
  return empty(
    "There are no agents here yet.",
    "Make one: ",
    el("code", {}, "selfpager demo"),
    " or ",
    el("code", {}, "selfpager chat AGENT.yaml"),
    ". It appears here by itself.",
    el("br"),
    "Another home? This one is ",
    el("code", {}, known.home),
    "; name yours with ",
    el("code", {}, "--home"),
    ".",
  );
}

// --- the window

async function look() {
  const { agent, at } = here;
  try {
    const [now, told] = await Promise.all([
      api.get(agent, "now", { at }),
      columnsAround(agent, at, chart.room(), known.told),
    ]);
    if (agent !== here.agent || at !== here.at) return;
    Object.assign(known, { now, told });
    if (now.at && now.at !== here.at) {
      here.at = now.at; // any step stands for the request after it
      write(history.replaceState);
    }
    drawWindow(chart, now, told);
    if (owed) {
      const rest = owed - Math.sign(owed);
      const direction = owed - rest;
      owed = 0;
      stepBy(direction);
      if (here.at !== at) owed += rest; // else there is no other
    }
  } catch (error) {
    if (agent === here.agent) toast(error.message, true);
  }
}

// A held key is faster than any answer: within the drawn columns it moves along them, beyond them it waits.
function stepBy(direction) {
  const { now, told } = known;
  if (!now || !told || told.agent !== here.agent || (direction > 0 && !here.at)) return;
  const steps = [...told.columns.map((column) => column.step), ...(told.newest ? [null] : [])];
  const place = steps.indexOf(here.at);
  const next = place < 0 ? undefined : steps[place + direction];
  if (next !== undefined) return move(next);
  if (now.at !== here.at) owed += direction;
  else if (direction > 0 || now.before) move(direction > 0 ? now.after : now.before);
}

function move(at) {
  here.at = at;
  clearTimeout(writing);
  writing = setTimeout(() => write(history.replaceState), SETTLED_MS);
  arrive();
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
        ? "Sent to the agent, which takes it at its next step, or when it is next started."
        : "Sent to the process that runs the agent, which takes it at its next step.";
    toast({ done: "Done.", refused: `Refused: ${done.text}`, pending: left }[done.state], done.state === "refused");
    await beat();
    return done;
  } catch (error) {
    toast(error.message, true);
    throw error;
  }
}

// --- live

async function beat() {
  if (document.hidden) return;
  const { agent } = here;
  try {
    const told = await state(agent);
    if (agent !== here.agent) return;
    const back = known.trouble !== "";
    known.trouble = "";
    drawTrouble("");
    agentsAre(told.agents);
    if (agent !== here.agent || !agent) return;
    drawState(told, known.readOnly);
    const changed = back || (known.revision?.agent === agent && known.revision.number !== told.revision);
    known.revision = { agent, number: told.revision };
    if (changed) await Promise.all([look(), panel(back && !known.list)]);
  } catch (error) {
    known.trouble = error.message;
    drawTrouble(error.message);
    await api.agents().then(({ agents }) => agentsAre(agents), () => null); // this one may have gone, and others come
  }
}

// Agents come and go while the page is open. If the shown one is deleted, the page says so and stays.
function agentsAre(names) {
  if (JSON.stringify(names) === JSON.stringify(known.agents)) return;
  const first = !here.agent;
  known.agents = names;
  drawAgents(names, here.agent);
  if (!first) return;
  read();
  if (here.agent) arrive();
}

// Viewing must not slow the agent down: the pause before the next load is many times as long as the last one took.
async function pulse() {
  const began = performance.now();
  await beat();
  setTimeout(pulse, Math.max(LOOK_MS, REST * (performance.now() - began)));
}

async function start() {
  listen({ go, stepBy, tab: () => here.tab });
  addEventListener("hashchange", () => {
    read();
    arrive();
  });
  document.addEventListener("visibilitychange", beat);
  const told = await api.agents();
  Object.assign(known, { home: told.home, agents: told.agents, readOnly: told.read_only });
  drawAgents(told.agents, null);
  read();
  await arrive();
  document.body.dataset.ready = "yes";
  pulse();
}

start().catch((error) => toast(error.message, true));
