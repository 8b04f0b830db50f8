// The searches, with every part of their scores: what they found, and what they just missed. One can be tried.

import { chip, el, empty, fill, stepLink, tierName, time } from "./dom.js";

const MANY = 20;

export async function searches(root, ctx) {
  const shown = Math.max(MANY, root.querySelectorAll(".search.past-search").length);
  const found = await ctx.get("searches", { at: ctx.at, offset: 0, limit: Math.min(100, shown) });
  if (!ctx.current()) return;
  const list = root.querySelector(".searches") || frame(root, ctx);
  const cards = found.rows.map((row) => card(row, ctx));
  const more = el("button", { type: "button", class: "more", hidden: found.rows.length >= found.total }, "older searches");
  more.addEventListener("click", async () => {
    const offset = list.querySelectorAll(".past-search").length;
    const older = await ctx.get("searches", { at: ctx.at, offset, limit: MANY });
    more.before(...older.rows.map((row) => card(row, ctx)));
    more.hidden = list.querySelectorAll(".past-search").length >= older.total;
  });
  fill(
    list,
    found.total
      ? [...cards, more]
      : empty("Nobody has searched yet.", "Each search will appear here: what it found, what it just missed, and why."),
  );
}

// The form to try a search, which stays while the searches below it are drawn again.
function frame(root, ctx) {
  const list = el("div", { class: "searches" });
  const result = el("div", { class: "tried", "aria-live": "polite" });
  const text = el("input", {
    type: "search",
    class: "message",
    placeholder: "What would the agent find now?",
    "aria-label": "Try a search",
    value: ctx.more.q || "",
  });
  const tier = el(
    "select",
    { "aria-label": "Where to search" },
    ["memory", "recall", "archive"].map((name) => el("option", { value: name }, tierName(name))),
  );
  tier.value = ctx.more.tier || "memory";
  const search = async () => {
    ctx.note({ q: text.value.trim(), tier: tier.value });
    if (!text.value.trim()) return fill(result);
    const found = await ctx.get("find", { text: text.value, tier: tier.value });
    return fill(result, card(found, ctx));
  };
  const form = el(
    "form",
    {
      class: "tell",
      on: {
        submit: (event) => {
          event.preventDefault();
          search().catch((error) => fill(result, el("p", { class: "bad" }, error.message)));
        },
      },
    },
    text,
    tier,
    el("button", { type: "submit" }, "Try"),
  );
  const about = el(
    "p",
    { class: "told" },
    "The parts of a score add up to it: the words of the question, those of neighbouring steps, nearness in meaning, matching " +
      "word pieces (late), the speaker (who), the time (when), facts stored from a step. Scores compare the hits of one search; a hit " +
      "without a rival has 0.",
  );
  fill(root, el("section", { class: "card" }, form, about), result, list);
  if (text.value) search().catch(() => null);
  return list;
}

function card(row, ctx) {
  const best = Math.max(...row.found.map((hit) => hit.score), ...row.missed.map((hit) => hit.score), 1e-9);
  const last = row.found.length ? row.found[row.found.length - 1].score : null;
  const hits = [
    ...row.found.map((hit, place) => hitRow(hit, place + 1, best, null, ctx)),
    ...row.missed.map((hit, place) => hitRow(hit, row.found.length + place + 1, best, last, ctx)),
  ];
  const { tier, query } = row.detail;
  const about = row.at
    ? el("p", { class: "told" }, `by ${row.actor} · `, time(row.at), " · after ", stepLink(row.step, ctx))
    : el("p", { class: "told" }, "tried by you, now; the ledger does not note it");
  return el(
    "section",
    { class: `card search${row.at ? " past-search" : ""}`, "aria-label": `Search for ${query}` },
    el(
      "div",
      { class: "head" },
      el("h2", { class: "query" }, query || "(no words)"),
      el("span", { class: `event ${tier === "archive" ? "archival" : "recall"}` }, tierName(tier)),
      about,
    ),
    row.detail.without_meaning && el("p", { class: "bad" }, `Words alone answered: ${row.detail.without_meaning}`),
    hits.length ? el("ol", { class: "hits-list" }, hits) : el("p", { class: "none" }, "Nothing came back."),
  );
}

// Two digits everywhere: the server has rounded the parts so that they add up.
const digits = (value) => value.toFixed(2);

function hitRow(hit, rank, best, last, ctx) {
  const missed = last !== null;
  const parts = Object.entries(hit.parts).map(([name, value]) => `${name} ${digits(value)}`);
  return el(
    "li",
    { class: missed ? "hit-row missed" : "hit-row" },
    el("span", { class: "rank" }, rank),
    chip(hit.page_id, ctx.open, !missed),
    el(
      "span",
      { class: "score" },
      el("i", { style: { width: `${Math.max(2, (100 * hit.score) / best)}%` } }),
      el("b", {}, digits(hit.score)),
    ),
    el(
      "span",
      { class: "score-parts" },
      parts.length ? `= ${parts.join(" + ")}` : "no rival",
      missed && el("em", {}, ` missed by ${digits(last - hit.score)}`),
    ),
    el("span", { class: "words" }, hit.text),
  );
}
