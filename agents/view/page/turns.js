// The steps, resident and evicted, each call with its result.

import { choices, el, empty, fill, heads, number, searchField, time } from "./dom.js";
import { tellAgent } from "./edits.js";
import { LongList } from "./list.js";

const NARROW = matchMedia("(max-width: 700px)");
const KINDS = { all: "All", resident: "In the prompt", evicted: "Evicted" };

export function turns(root, ctx) {
  const filter = { kind: ctx.more.kind || "", text: ctx.more.q || "" };
  const change = (changes) => {
    Object.assign(filter, changes);
    ctx.note({ kind: filter.kind, q: filter.text });
    list.reset();
  };
  const list = new LongList({
    load: (offset, limit) => ctx.get("steps", { ...filter, at: ctx.at, offset, limit }),
    row: (step) => row(step, ctx),
    height: () => (NARROW.matches ? 62 : 40),
    label: "Steps, newest first",
    nothing: () =>
      filter.text || filter.kind
        ? empty("No step matches.", "Try another filter.")
        : empty("Nobody has said anything yet.", "Each message, reply and tool call will appear here, resident or not."),
  });
  const kinds = choices("Which steps", KINDS, filter.kind || "all", (kind) => change({ kind: kind === "all" ? "" : kind }));
  const text = searchField("holds this text", "Only steps that hold", filter.text, (words) => change({ text: words }));
  fill(
    root,
    el(
      "section",
      { class: "card" },
      el("div", { class: "head" }, el("h2", {}, "Turns"), kinds, text),
      !ctx.readOnly && tellAgent(ctx),
      heads("step", [["step"], ["who"], ["when"], ["tokens", "tokens"], ["what", "words"]]),
      list.element,
    ),
  );
  return list;
}

function row(step, ctx) {
  const where = step.resident ? "in the prompt" : "not in the prompt";
  return el(
    "button",
    { type: "button", class: "line step", "data-key": step.page_id, on: { click: () => ctx.open(step.page_id) } },
    el("span", { class: `chip recall${step.resident ? "" : " gone"}`, title: where }, step.page_id),
    el("span", { class: "who" }, step.who),
    time(step.at),
    el("span", { class: "tokens" }, step.tokens ? number(step.tokens) : ""),
    el(
      "span",
      { class: "words" },
      step.purged ? "(purged)" : step.begins,
      step.calls.map((call) => [
        el("span", { class: "call" }, `${call.name}(${call.input})`),
        call.result === null
          ? el("span", { class: "told" }, " no result yet")
          : el("span", { class: call.failed ? "bad" : "told" }, ` → ${call.result}`),
      ]),
    ),
  );
}
