// What sleeps have proposed: each edit as a difference with its sources, to be accepted or refused one by one.

import { chip, difference, el, empty, fill, number, time } from "./dom.js";
import { decide } from "./edits.js";

export async function sleeps(root, ctx) {
  const told = await ctx.get("sleeps");
  if (!ctx.current()) return;
  if (!told.sleeps.length) {
    fill(
      root,
      empty(
        "It has not slept yet.",
        "A sleep proposes to merge repeats, to let corrections supersede, and to keep what was said: ",
        el("code", {}, `selfpager sleep ${ctx.agent}`),
      ),
    );
    return;
  }
  const open = new Set([...root.querySelectorAll("details[open]")].map((each) => each.dataset.sleep));
  fill(root, told.sleeps.map((each, place) => sleepCard(each, ctx, place === 0 || open.has(String(each.number)))));
}

const NAMES = { open: "open", applied: "applied", refused: "refused", stale: "stale", undone: "undone" };

function sleepCard(sleep, ctx, isOpen) {
  const counts = Object.keys(NAMES)
    .map((state) => [sleep.edits.filter((edit) => edit.state === state).length, NAMES[state]])
    .filter(([count]) => count)
    .map(([count, name]) => `${number(count)} ${name}`);
  const has = (state) => sleep.edits.some((edit) => edit.state === state);
  const act = (kind, title, isMain = false) =>
    el("button", { type: "button", class: isMain ? "main" : null, on: { click: (event) => decide(event.target, ctx, kind, sleep.number) } }, title);
  const edits = sleep.edits.map((edit) => editItem(sleep, edit, ctx));
  return el(
    "section",
    { class: "card sleep", "aria-label": `Sleep ${sleep.number}` },
    el(
      "div",
      { class: "head" },
      el("h2", {}, `Sleep ${sleep.number}`),
      el("p", { class: "told" }, time(sleep.at), ` · ${counts.join(", ") || "nothing to change"}`, cost(sleep.detail)),
      !ctx.readOnly && sleep.finished && has("open") && act("sleep_apply", "Apply all", true),
      !ctx.readOnly && sleep.finished && has("open") && act("sleep_refuse", "Refuse all"),
      !ctx.readOnly && has("applied") && act("sleep_undo", "Undo"),
    ),
    !sleep.finished && el("p", { class: "bad" }, "It was interrupted. The next one goes on with it."),
    (sleep.detail.failures || []).map((why) => el("p", { class: "bad" }, `The model failed: ${why}`)),
    edits.length > 0 &&
      el(
        "details",
        { "data-sleep": String(sleep.number), open: isOpen },
        el("summary", {}, edits.length === 1 ? "1 edit" : `${number(edits.length)} edits`),
        el("ol", { class: "edits" }, edits),
      ),
  );
}

function cost({ requests, tokens, usd, dropped }) {
  if (!requests) return "";
  const left = Object.values(dropped || {}).reduce((sum, count) => sum + count, 0);
  return ` · ${number(requests)} request${requests === 1 ? "" : "s"}, ${number(tokens)} tokens${usd ? `, $${usd.toFixed(4)}` : ""}` + (left ? ` · ${number(left)} claims dropped` : "");
}

function editItem(sleep, edit, ctx) {
  const decideOne = (kind, title, label) =>
    el(
      "button",
      { type: "button", "aria-label": `${label} edit ${edit.number}`, on: { click: (event) => decide(event.target, ctx, kind, sleep.number, edit.number) } },
      title,
    );
  const name = edit.block ? `the core block ${edit.block}` : edit.kind;
  return el(
    "li",
    { class: `edit ${edit.state}` },
    el(
      "div",
      { class: "head" },
      el("span", { class: `event ${edit.block ? "core" : "archival"}` }, edit.kind),
      el("span", { class: "state" }, edit.state),
      el("span", { class: "words" }, edit.reason),
      edit.pages.concat(edit.keeps).map((page) => chip(page, ctx.open, edit.state !== "applied")),
      !ctx.readOnly && sleep.finished && edit.state === "open" && [decideOne("sleep_apply", "Accept", "Accept"), decideOne("sleep_refuse", "Refuse", "Refuse")],
    ),
    edit.asks && edit.state === "open" && el("p", { class: "told" }, `For a person to decide: ${edit.asks}.`),
    edit.why && el("p", { class: "bad" }, edit.why),
    el("div", { role: "group", "aria-label": `What ${name} changes` }, difference(edit.lines)),
    edit.quotes
      .filter((quote) => quote.text)
      .map((quote) => el("blockquote", { class: "quote" }, chip(quote.step, ctx.open), " ", quote.text)),
    edit.from.length > 0 && el("p", { class: "told" }, `from ${edit.from.join("; ")}`),
  );
}
