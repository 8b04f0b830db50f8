// All agents of the home: the first page.

import { age, dollars, el, empty, fill, number, runner } from "./dom.js";

export const place = { begin: "" }; // the name that the page of agents begins with, or the next one there is
const jump = el("input", {
  type: "search",
  autocomplete: "off",
  spellcheck: "false",
  placeholder: "From a name on",
  "aria-label": "Show agents from this name on",
});

export function drawFleet(root, { fleet: agents, next }, { home, go, again }) {
  const says = JSON.stringify([agents, next]);
  if (root.dataset.fleet === says && root.hasChildNodes()) return;
  root.dataset.fleet = says;
  if (!agents.length && !place.begin) {
    fill(root, nobody(home));
    return;
  }
  const rows = agents.map((agent) => row(agent, go));
  const typing = document.activeElement === jump;
  fill(
    root,
    el(
      "section",
      { class: "card" },
      el(
        "div",
        { class: "head" },
        el("h2", {}, agents.length === 1 ? "1 agent" : `${number(agents.length)} agents`),
        el("p", { class: "told" }, home),
        next || place.begin ? pages(next, again) : null,
      ),
      el(
        "div",
        { class: "wide" },
        el(
          "table",
          {},
          el("thead", {}, el("tr", {}, HEADS.map(([name, kind]) => el("th", { scope: "col", class: kind }, name)))),
          el("tbody", {}, rows),
        ),
      ),
    ),
  );
  if (typing) jump.focus();
}

// Of more agents than a page shows.
function pages(next, again) {
  const from = (name) => {
    place.begin = name;
    jump.value = name;
    return again();
  };
  jump.onchange = () => from(jump.value.trim());
  const button = (name, begin, off) =>
    el("button", { type: "button", disabled: off, on: { click: () => from(begin) } }, name);
  return el("div", { class: "pages" }, jump, button("First", "", !place.begin), button("Next", next, !next));
}

const HEADS = [
  ["Agent"],
  ["State"],
  ["Window"],
  ["Steps", "figure"],
  ["Facts", "figure"],
  ["Tokens", "figure"],
  ["Cost", "figure"],
  ["Last step", "figure"],
  ["Last error"],
];

function row(agent, go) {
  const open = el(
    "button",
    { type: "button", class: "link name", on: { click: () => go({ agent: agent.name, tab: "request", at: null, text: "" }) } },
    agent.name,
  );
  const name = el("th", { scope: "row" }, open, agent.model && el("span", { class: "told" }, agent.model));
  if (agent.trouble) return el("tr", {}, name, el("td", { colspan: HEADS.length - 1, class: "bad" }, agent.trouble));
  const cells = [
    ["Steps", number(agent.steps)],
    ["Facts", number(agent.facts)],
    ["Tokens", number(agent.tokens)],
    ["Cost", agent.usd === null ? "—" : dollars(agent.usd)],
    ["Last step", agent.last_at ? [age(agent.last_at), el("span", { class: "age" }, " ago")] : "—"],
  ];
  return el(
    "tr",
    {},
    name,
    el("td", {}, stateOf(agent)),
    el("td", {}, fullness(agent)),
    cells.map(([title, inside]) => el("td", { class: "figure", "data-name": title }, inside)),
    el("td", { class: "error" }, errorOf(agent)),
  );
}

function stateOf(agent) {
  const { running } = agent;
  const stands = agent.approvals ? "waits for approval" : agent.open_calls ? "stopped in a call" : "not running";
  const words = running && !agent.approvals ? "running" : stands;
  const where = running && el("span", { class: "process" }, `, ${runner(running)}`);
  return [
    el("span", { class: running ? "pill live" : "pill" }, words, where),
    agent.waiting ? el("span", { class: "told" }, ` ${number(agent.waiting)} waiting`) : null,
  ];
}

function fullness({ used_tokens: used, usable_tokens: usable, requests }) {
  if (!usable) return el("span", { class: "told" }, requests ? "no open epoch" : "nothing sent yet");
  const share = Math.round((100 * used) / usable);
  return [
    el("span", { class: "gauge", "aria-hidden": "true" }, el("i", { style: { width: `${Math.min(100, share)}%` } })),
    el("span", { class: "told" }, `${share} % of ${number(usable)}`),
  ];
}

function errorOf({ last_error: error }) {
  if (!error) return el("span", { class: "told" }, "none");
  const words = error.event === "interrupted" ? `a call of ${error.reason} was cut off` : error.reason;
  return [el("span", {}, words), el("span", { class: "told" }, " ", age(error.at), " ago, after ", error.step)];
}

function nobody(home) {
  const title = "There are no agents here yet.";
  if (!home) return empty(title, el("code", {}, "POST /v1/agents"), " makes one. It appears here by itself."); // a tenant
  return empty(
    title,
    "Make one: ",
    el("code", {}, "selfpager init"),
    " or ",
    el("code", {}, "selfpager demo"),
    ". It appears here by itself.",
    el("br"),
    "Another home? This one is ",
    el("code", {}, home),
    "; name yours with ",
    el("code", {}, "--home"),
    ".",
  );
}
