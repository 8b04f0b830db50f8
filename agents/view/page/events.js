// The ledger as a timeline, and the costs of requests.

import { chip, dollars, el, empty, eventName, fill, heads, number, stepLink, tierName, tierOf, time } from "./dom.js";
import { LongList } from "./list.js";

const NARROW = matchMedia("(max-width: 700px)");

// --- the ledger

export function ledger(root, ctx) {
  const chosen = new Set((ctx.more.events || "").split(",").filter(Boolean));
  const list = new LongList({
    load: (offset, limit) => ctx.get("ledger", { events: [...chosen].join(","), at: ctx.at, offset, limit }),
    row: (move) =>
      el(
        "div",
        { class: "line move" },
        time(move.at),
        stepLink(move.step, ctx),
        el("span", { class: `event ${tierOf(move.event)}` }, eventName(move.event)),
        el("span", { class: "which" }, move.page_id && chip(move.page_id, ctx.open)),
        el("span", { class: "tokens" }, move.tokens ? number(move.tokens) : ""),
        el("span", { class: "words" }, told(move)),
        el("span", { class: "actor" }, move.actor),
      ),
    height: () => (NARROW.matches ? 62 : 36),
    label: "The ledger, newest first",
    nothing: () => empty("Nothing has moved yet.", "Every movement of the memory will appear here with its reason."),
  });
  const choices = el("div", { class: "choices", role: "group", "aria-label": "Which events" });
  const look = async () => {
    const { events } = await ctx.get("events", { at: ctx.at });
    if (!ctx.current()) return;
    fill(
      choices,
      Object.entries(events)
        .sort(([, one], [, other]) => other - one)
        .map(([event, count]) =>
          el(
            "button",
            {
              type: "button",
              class: `choice ${tierOf(event)}`,
              "aria-pressed": String(chosen.has(event)),
              on: {
                click: (click) => {
                  if (!chosen.delete(event)) chosen.add(event);
                  click.currentTarget.setAttribute("aria-pressed", String(chosen.has(event)));
                  ctx.note({ events: [...chosen].join(",") });
                  list.reset();
                },
              },
            },
            eventName(event),
            el("small", {}, number(count)),
          ),
        ),
    );
  };
  fill(
    root,
    el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Ledger"), choices),
      heads("move", [["when"], ["after"], ["what"], ["page"], ["tokens", "tokens"], ["why", "words"], ["who"]]),
      list.element,
    ),
  );
  look();
  const again = list.again.bind(list);
  list.again = () => Promise.all([again(), list.total === null ? null : look()]);
  return list;
}

function told(move) {
  const { detail } = move;
  if (move.event === "search") return `${tierName(detail.tier)}: “${detail.query}”, ${(detail.found || []).length} came back`;
  if (move.event === "core") return `${detail.block}: ${move.reason}`;
  return `${move.reason}${move.because}`;
}

// --- cost

export function cost(root, ctx) {
  const sums = el("dl", { class: "sums" });
  let largest = 1; // of the requests seen so far, in tokens
  const list = new LongList({
    load: async (offset, limit) => {
      const found = await ctx.get("costs", { at: ctx.at, offset, limit });
      largest = Math.max(largest, ...found.rows.map((each) => whole(each.usage)));
      if (ctx.current()) fill(sums, tiles(found));
      return found;
    },
    row: (each) =>
      el(
        "div",
        { class: `line cost${each.broke ? " broke" : ""}` },
        stepLink(each.step, ctx),
        time(each.at),
        figures(each),
        each.broke
          ? el("span", { class: "words" }, el("span", { class: "break" }, "cache: ", each.broke))
          : shares(each.usage, largest),
      ),
    height: () => (NARROW.matches ? 82 : 40),
    label: "Requests, newest first",
    nothing: () =>
      empty("Nothing was paid yet.", "Each request will appear here with its tokens, and where the cache was missed."),
  });
  fill(
    root,
    el(
      "section",
      { class: "card" },
      el("div", { class: "head" }, el("h2", {}, "Cost")),
      sums,
      el(
        "div",
        { class: "line cost heads", "aria-hidden": "true" },
        el("span", { class: "after" }, "step"),
        el("span", { class: "at" }, "when"),
        ["input", "cached", "written", "output", "dollars"].map((name) => el("span", { class: "figure" }, name)),
        el("span", { class: "words key" }, SHARES.map(([, kind, name]) => [el("i", { class: `dot ${kind}` }), name])),
      ),
      list.element,
    ),
  );
  return list;
}

const SHARES = [
  ["cache_read_input_tokens", "cached", "from the cache"],
  ["cache_creation_input_tokens", "written", "into the cache"],
  ["input_tokens", "plain", "neither"],
];

const whole = (usage) => (usage ? SHARES.reduce((sum, [field]) => sum + usage[field], 0) : 0);

// The size of a request relative to the others, and the share that was cached.
function shares(usage, largest) {
  return el(
    "span",
    { class: "words shares", "aria-hidden": "true" },
    usage &&
      SHARES.map(([field, kind]) =>
        el("i", { class: kind, style: { width: `${(100 * usage[field]) / largest}%` } }),
      ),
  );
}

function figures(each) {
  const { usage } = each;
  if (!usage) return el("span", { class: "figure wide" }, "the provider did not say");
  const known = [
    usage.input_tokens,
    usage.cache_read_input_tokens,
    usage.cache_creation_input_tokens,
    usage.output_tokens,
  ];
  const names = ["input", "cached", "written", "output"];
  return [
    ...known.map((value, place) => el("span", { class: "figure", "data-name": names[place] }, number(value))),
    el("span", { class: "figure", "data-name": "dollars" }, each.usd === null ? "" : dollars(each.usd)),
  ];
}

function tiles(found) {
  const { sum } = found;
  const sent = whole(sum);
  const searches = sum.web_search_requests;
  const share = (tokens) => `${sent ? Math.round((100 * tokens) / sent) : 0} % of all`;
  const money =
    found.usd === null
      ? ["—", ["name ", el("code", {}, "prices"), " in its YAML"]]
      : [dollars(found.usd), `at the prices it runs with${searches ? `, with ${number(searches)} searches` : ""}`];
  return [
    ["Sent", number(sent), `${number(found.total)} requests`],
    ["From the cache", number(sum.cache_read_input_tokens), share(sum.cache_read_input_tokens)],
    ["Into the cache", number(sum.cache_creation_input_tokens), share(sum.cache_creation_input_tokens)],
    ["Answered", number(sum.output_tokens), "tokens"],
    ["Dollars", ...money],
  ].map(([name, value, hint]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value), el("dd", { class: "told" }, hint)),
  );
}
