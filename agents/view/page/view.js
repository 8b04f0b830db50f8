// The page as a whole: the agent, the request and the panel that it shows. It reloads them after every commit.

import { here, note, read, write } from "./address.js";
import * as api from "./api.js";
import { byId, el, empty, fill } from "./dom.js";
import { drawFleet, place } from "./fleet.js";
import { listen } from "./keys.js";
import { drawAgents, drawState, drawTrouble, state, toast } from "./live.js";
import { openPage } from "./page.js";
import { PANELS } from "./panels.js";
import { WindowCard } from "./window.js";

const LOOK_MS = 1000;
const REST = 25; // times as long as a look took
const known = { home: "", agents: [], more: false, readOnly: false, revision: null, list: null, turn: 0, trouble: "" };
let loading = { aim: "", busy: false, again: false };
const win = new WindowCard({ go, arrive, frame, compare: (step) => go({ tab: "request", more: { with: step } }) });

// --- what is shown

// What belongs to one panel, such as its filters, ends where another panel or agent begins.
function go(changes) {
  const elsewhere = (name) => name in changes && changes[name] !== here[name];
  if (!("more" in changes) && (elsewhere("agent") || elsewhere("tab"))) here.more = {};
  Object.assign(here, changes);
  win.stop();
  write(true);
  return arrive();
}

// What draws the panel anew if it changes. Another step only reloads it.
const aimed = () => JSON.stringify([here.agent, here.tab, here.text, { ...here.more, page: null }]);

// Of many steps in quick succession only the newest is loaded, as soon as the previous load has ended.
async function arrive() {
  const aim = aimed();
  let fresh = aim !== loading.aim || !byId("panel").hasChildNodes();
  frame();
  if (!here.agent) {
    loading = { aim, busy: false, again: false };
    closeList();
    await fleet();
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
    await Promise.all([win.look(), panel(fresh)]);
    fresh = false;
  }
  mine.busy = false;
  sheet();
}

function frame() {
  byId("agent").value = here.agent || "";
  if (here.agent && byId("agent").value !== here.agent) drawAgents(known.agents, here.agent); // one of very many
  document.title = here.agent ? `${here.agent} · selfpager` : "selfpager";
  document.body.classList.toggle("nobody", !here.agent);
  document.body.classList.toggle("past", Boolean(here.agent && here.at));
  fill(byId("step"), here.at || "now");
  win.chart.select(here.at);
  drawTabs();
  then();
  if (document.activeElement !== byId("find-text")) byId("find-text").value = here.text;
}

// What is not of now says so.
function then() {
  fill(
    byId("then"),
    here.agent && here.at
      ? [
          `As it was in the request that ${here.at} answered. `,
          el("button", { type: "button", class: "link", on: { click: () => go({ at: null }) } }, "Show now"),
        ]
      : null,
  );
}

// --- panels

function drawTabs() {
  const tab = ([name, { name: title, tier }]) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-selected": String(name === here.tab),
        "aria-controls": "panel",
        tabindex: name === here.tab ? "0" : "-1",
        class: tier || "",
        on: { click: () => go({ tab: name }) },
      },
      title,
    );
  fill(byId("tabs"), Object.entries(PANELS).map(tab));
  byId(`tab-${here.tab}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  const panel = byId("panel");
  if (here.agent) panel.setAttribute("aria-labelledby", `tab-${here.tab}`);
  else panel.removeAttribute("aria-labelledby");
  panel.setAttribute("role", here.agent ? "tabpanel" : "region");
  if (here.agent) panel.removeAttribute("aria-label");
  else panel.setAttribute("aria-label", "Agents");
}

function context() {
  const turn = known.turn;
  const { agent, text } = here;
  return {
    agent,
    text,
    readOnly: known.readOnly,
    go,
    get at() {
      return here.at; // lists are reloaded, not made anew, for another request
    },
    more: here.more,
    note: (changes) => {
      note(changes);
      loading.aim = aimed();
    },
    refresh: () => panel(false),
    current: () => turn === known.turn,
    get: (what, query) => api.get(agent, what, query),
    open: (page) => {
      const [own, memory] = page.split("/").reverse(); // one of a shared memory is opened there
      if (memory) return location.assign(`#${encodeURIComponent(memory)}/archive/now?page=${own}`);
      note({ page }, true);
      sheet();
    },
    edit: (kind, values) => edit(agent, kind, values),
  };
}

function closeList() {
  known.turn += 1;
  known.list?.close();
  known.list = null;
}

async function panel(fresh) {
  const root = byId("panel");
  try {
    if (!fresh && known.list) {
      await known.list.again();
      return;
    }
    if (fresh) {
      closeList();
      root.className = `panel ${here.tab}`;
      fill(root);
      delete root.dataset.text;
      delete root.dataset.fleet;
    } else known.turn += 1;
    await drawPanel(root, context());
  } catch (error) {
    fill(root, empty("This cannot be shown.", error.message));
  }
}

async function drawPanel(root, ctx) {
  const drawn = await PANELS[here.tab].draw(root, ctx);
  if (ctx.current() && drawn?.again) {
    known.list = drawn;
    await drawn.again();
  }
}

// The page that the address names, in its dialog.
function sheet() {
  const { page } = here.more;
  const box = byId("page");
  if (!here.agent || !page) return box.close();
  if (box.open && box.dataset.page === page) return undefined;
  return openPage(box, page, context()).catch((error) => {
    note({ page: null });
    toast(error.message, true);
  });
}

async function fleet() {
  const root = byId("panel");
  root.className = "panel fleet";
  delete root.dataset.text;
  const told = await api.fleet(place.begin);
  if (!here.agent) drawFleet(root, told, { home: known.home, go, again: () => fleet().catch(failed) });
  return told;
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
    const told = await (agent ? state(agent) : fleet());
    if (agent !== here.agent) return;
    const back = known.trouble !== "";
    known.trouble = "";
    drawTrouble("");
    agentsAre(told.agents);
    if (!agent) return;
    drawState(told, known.readOnly);
    const changed = back || (known.revision?.agent === agent && known.revision.number !== told.revision);
    known.revision = { agent, number: told.revision };
    if (changed) await Promise.all([win.look(), panel(back && !known.list)]);
  } catch (error) {
    known.trouble = error.message;
    drawTrouble(error.message);
    await api.agents().then(({ agents }) => agentsAre(agents), () => null); // this one may have gone, and others come
  }
}

// Agents come and go while the page is open. If the shown one is deleted, the page says so and stays.
function agentsAre(names) {
  if (JSON.stringify(names) === JSON.stringify(known.agents)) return;
  known.agents = names;
  drawAgents(names, here.agent);
}

// Viewing must not slow the agent down: the pause before the next load is many times as long as the last one took.
async function pulse() {
  const began = performance.now();
  await beat();
  setTimeout(pulse, Math.max(LOOK_MS, REST * (performance.now() - began)));
}

function follow() {
  const missing = read(known.agents, known.more);
  if (missing) toast(`There is no agent “${missing}” here.`, true);
  return arrive();
}

async function start() {
  listen({ go, stepBy: (direction) => win.stepBy(direction), zoom: (by) => win.zoom(by), closed: () => note({ page: null }) });
  addEventListener("hashchange", follow);
  document.addEventListener("visibilitychange", beat);
  const told = await api.agents();
  Object.assign(known, { home: told.home, agents: told.agents, more: told.more, readOnly: told.read_only });
  drawAgents(told.agents, null);
  await follow();
  document.body.dataset.ready = "yes";
  pulse();
}

const failed = (error) => toast(error.message, true);
start().catch(failed);
