// Two tiers: core with its versions, and the facts of the archive.

import { age, choices, copyButton, difference, el, empty, fill, heads, moment, number, searchField, time } from "./dom.js";
import { addFact, editBlock } from "./edits.js";
import { LongList } from "./list.js";

const NARROW = matchMedia("(max-width: 700px)");
const twoLines = (wide, narrow) => () => (NARROW.matches ? narrow : wide);

// --- core

export async function core(root, ctx) {
  const told = await ctx.get("core", { at: ctx.at });
  if (!ctx.current() || root.querySelector("form.editing")) return;
  if (!told.blocks.length) {
    fill(
      root,
      empty(
        "There are no core blocks.",
        "Name them under ",
        el("code", {}, "core.blocks"),
        " in the agent's YAML; " + "what they hold is then always in the prompt.",
      ),
    );
    return;
  }
  const open = new Set([...root.querySelectorAll("details[open]")].map((each) => each.dataset.block));
  fill(
    root,
    el(
      "div",
      { class: "blocks" },
      told.blocks.map((block) => blockCard(block, ctx, open.has(block.name))),
    ),
  );
}

function blockCard(block, ctx, open) {
  const share = Math.min(1, block.used_tokens / Math.max(1, block.limit_tokens));
  const editable = !ctx.readOnly && !block.read_only && !block.file && !ctx.at;
  const card = el("section", { class: "card block", "aria-label": `Core block ${block.name}` });
  const edit = editable && el("button", { type: "button", on: { click: () => editBlock(card, block, ctx) } }, "Edit");
  const told = [`version ${block.version}`, `by ${block.actor}`, moment(block.at)];
  if (block.plan) told.push(block.plan);
  if (block.read_only) told.push("read-only");
  if (block.via.length) told.push(`via ${block.via.join(", ")}`);
  if (block.file) told.push(`from ${block.file}`);
  return fill(
    card,
    el("div", { class: "head" }, el("h2", {}, block.name), el("p", { class: "told" }, told.join(" · ")), copyButton(() => block.value), edit),
    block.description && el("p", { class: "about" }, block.description),
    el(
      "div",
      {
        class: "meter",
        role: "meter",
        "aria-valuenow": block.used_tokens,
        "aria-valuemin": 0,
        "aria-valuemax": block.limit_tokens,
        "aria-label": "How full it is",
      },
      el("i", { style: { width: `${100 * share}%` }, class: share >= 1 ? "full" : "" }),
    ),
    el("p", { class: "told" }, `${number(block.used_tokens)} of ${number(block.limit_tokens)} tokens`),
    el("div", { class: "value" }, block.value || el("span", { class: "none" }, "It is empty.")),
    el(
      "details",
      { class: "versions", "data-block": block.name, open },
      el("summary", {}, `${block.versions.length} ${block.versions.length === 1 ? "version" : "versions"}`),
      el(
        "ol",
        {},
        block.versions.map((version) =>
          el(
            "li",
            {},
            el(
              "p",
              { class: "told" },
              `Version ${version.ordinal} by ${version.actor} · ${moment(version.at)}` +
                (version.step === "s0" ? "" : ` · after ${version.step}`) +
                ` · ${number(version.used_tokens)} tokens`,
            ),
            difference(version.lines),
          ),
        ),
      ),
    ),
  );
}

// --- the archive

const FACT_HEADS = [
  ["fact"],
  ["stored"],
  ["age", "age"],
  ["used (now)"],
  ["what", "words"],
  ["after", "source"],
  ["tags, until when"],
];
const KINDS = { all: "All", current: "Current", ended: "Ended", used: "Used", unused: "Never used" };

export function archive(root, ctx) {
  const filter = { kind: ctx.more.kind || "", text: ctx.more.q || "", source: ctx.more.source || "" };
  const change = (changes) => {
    Object.assign(filter, changes);
    ctx.note({ kind: filter.kind, q: filter.text, source: filter.source });
    list.reset();
  };
  const list = new LongList({
    load: (offset, limit) => ctx.get("facts", { ...filter, at: ctx.at, offset, limit }),
    row: (fact) => factRow(fact, ctx),
    height: twoLines(44, 66),
    label: "Facts, newest first",
    nothing: () =>
      filter.text || filter.source || filter.kind
        ? empty("No fact matches.", "Try another filter.")
        : empty(
            "The archive is empty.",
            "The agent stores facts with its tool ",
            el("code", {}, "archive"),
            "; you can add one here.",
          ),
  });
  const kinds = choices("Which facts", KINDS, filter.kind || "all", (kind) => change({ kind: kind === "all" ? "" : kind }));
  const text = searchField("holds this text", "Only facts that hold", filter.text, (words) => change({ text: words }));
  const sources = el("select", {
    class: "filter",
    "aria-label": "Only facts from",
    on: { change: () => change({ source: sources.value }) },
  });
  sources.append(el("option", { value: "" }, "any source"));
  ctx.get("sources", {}).then((told) => {
    for (const [name, count] of Object.entries(told.sources))
      sources.append(el("option", { value: name }, `${name} (${number(count)})`));
    sources.value = filter.source;
  });
  fill(
    root,
    el(
      "section",
      { class: "card" },
      el(
        "div",
        { class: "head" },
        el("h2", {}, "Archive"),
        kinds,
        sources,
        text,
        !ctx.readOnly && addFact(ctx),
      ),
      heads("fact", FACT_HEADS),
      list.element,
    ),
  );
  return list;
}

function factRow(fact, ctx) {
  const state = fact.purged
    ? "purged"
    : fact.forgotten !== null
      ? "ended"
      : fact.superseded_by
        ? `superseded by ${fact.superseded_by}`
        : fact.valid_until
          ? `until ${moment(fact.valid_until)}`
          : "";
  const over = state && !(fact.valid_until && new Date(fact.valid_until) > new Date());
  return el(
    "button",
    {
      type: "button",
      class: `line fact${over ? " over" : ""}`,
      "data-key": fact.page_id,
      on: { click: () => ctx.open(fact.page_id) },
    },
    el("span", { class: `chip archival${over ? " gone" : ""}` }, fact.page_id),
    time(fact.at),
    age(fact.at),
    el("span", { class: "uses", title: `used ${fact.uses} times` }, fact.uses ? `${number(fact.uses)}×` : ""),
    el("span", { class: "words" }, fact.key && el("b", {}, `${fact.key}: `), fact.text),
    el("span", { class: "source", title: "stored after this step" }, fact.step === "s0" ? "" : fact.step),
    el(
      "span",
      { class: "tags" },
      state && el("span", { class: "state" }, state),
      fact.via.map((name) => el("span", { class: "tag via", title: "an untrusted source" }, `via ${name}`)),
      fact.tags.slice(0, 3).map((tag) => el("span", { class: "tag" }, tag)),
    ),
  );
}
