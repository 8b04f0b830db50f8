// Why the agent forgot a text: the answer first, then the pages that hold it, then the searches for it.

import { chip, copyButton, el, empty, eventName, fill, number, stepLink, tierOf, time } from "./dom.js";

const MOST = 5;

export async function trace(root, ctx) {
  if (!ctx.text) {
    fill(
      root,
      empty(
        "Why did it forget …?",
        "Press ",
        el("kbd", {}, "/"),
        " and name a piece of what was said or stored, or a page such " +
          "as f12 or s45. You see whether it is in the prompt, why not, and every event of its life.",
      ),
    );
    return;
  }
  if (root.dataset.text !== ctx.text) fill(root, el("p", { class: "waits" }, "Looking …"));
  const limit = Number(ctx.more.limit) || MOST;
  const told = await ctx.get("trace", { text: ctx.text, at: ctx.at, limit });
  if (!ctx.current()) return;
  root.dataset.text = ctx.text;
  const sides = [
    [...told.pages.map((page) => life(page, ctx)), more(told, limit, ctx)],
    [searched(told, ctx), near(told, ctx)],
  ];
  const shown = sides.map((cards) => cards.filter(Boolean)).filter((cards) => cards.length);
  fill(root, answer(told, ctx), shown.map((cards) => el("div", { class: "trace-side" }, cards)));
}

function answer(told, ctx) {
  const { verdict } = told;
  const when = verdict.at ? `in the request that ${verdict.at} answered` : "in the prompt now";
  const is = verdict.at ? "was" : "is";
  const says = `It ${is} ${verdict.present ? "" : "not "}${when}.`;
  const places = verdict.places.map((place) =>
    el(
      "li",
      { class: `piece ${place.part}` },
      el("span", { class: "piece-title" }, place.title),
      place.page_id && chip(place.page_id, ctx.open),
    ),
  );
  if (verdict.more_places) places.push(el("li", { class: "told" }, `and ${number(verdict.more_places)} more`));
  const plain = () => [`“${told.text}”: ${says}`, ...verdict.reasons, ...verdict.places.map((each) => each.title)].join("\n");
  return el(
    "section",
    { class: `card answer ${verdict.present ? "yes" : "no"}`, "aria-labelledby": "answer-title" },
    el("div", { class: "asked" }, `“${told.text}”`, copyButton(plain)),
    el("h2", { id: "answer-title" }, says),
    el(
      "ul",
      { class: "reasons" },
      verdict.present ? places : verdict.reasons.map((reason) => el("li", {}, linked(reason, ctx))),
    ),
  );
}

// Page ids in a sentence become buttons that open the page. Quoted text is somebody else's and stays text.
function linked(text, ctx) {
  return text
    .split(/(“[^”]*(?:”|$))/)
    .flatMap((piece) =>
      piece.startsWith("“")
        ? [piece]
        : piece.split(/\b([fsxk]\d+)\b/).map((word, place) => (place % 2 ? chip(word, ctx.open, false) : word)),
    );
}

function life(page, ctx) {
  const { page_id: id, block, present } = page;
  const [first, ...others] = page.events.map((event) => moment(event, ctx));
  const left = page.more_events
    ? el("li", { class: "told left-out" }, `${number(page.more_events)} more events`)
    : null;
  return el(
    "section",
    { class: "card life-of", "aria-label": `The life of ${id || block}` },
    el(
      "div",
      { class: "head" },
      el("h2", {}, id ? chip(id, ctx.open, present) : `Core block ${block}`),
      el("p", { class: "told" }, present ? "in the prompt" : "not in the prompt"),
    ),
    el("ol", { class: "life-events" }, first, left, others),
  );
}

function moment(event, ctx) {
  return el(
    "li",
    { class: `moment ${event.found === false ? "missed" : tierOf(event.event)}` },
    el(
      "span",
      { class: "moment-head" },
      event.step ? stepLink(event.step, ctx) : null,
      el("b", {}, event.found === null ? eventName(event.event) : event.found ? "found" : "missed"),
      time(event.at),
    ),
    el("p", {}, linked(event.text, ctx)),
  );
}

function more(told, limit, ctx) {
  if (!told.more_pages && !told.uncounted) return null;
  const count = `${told.uncounted ? "more than " : ""}${number(told.more_pages)} more places hold it. `;
  const show = () => ctx.go({ more: { limit: String(Math.min(100, 4 * limit)) } });
  return el(
    "p",
    { class: "told more-places" },
    count,
    limit < 100 && el("button", { type: "button", class: "link", on: { click: show } }, "Show more"),
    " A longer piece of the text finds fewer.",
  );
}

function searched(told, ctx) {
  if (!told.searches.length) return null;
  const earlier = told.more_searches ? `${number(told.more_searches)} earlier ones are not shown` : null;
  return el(
    "section",
    { class: "card", "aria-labelledby": "searched-title" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "searched-title" }, "Searches for it"),
      earlier && el("p", { class: "told" }, earlier),
    ),
    el("ol", { class: "life-events" }, told.searches.map((event) => moment(event, ctx))),
  );
}

function near(told, ctx) {
  if (!told.near.length) return null;
  return el(
    "section",
    { class: "card" },
    el("div", { class: "head" }, el("h2", {}, "What a search for it finds")),
    el(
      "ul",
      { class: "near" },
      told.near.map((page) => el("li", {}, chip(page.page_id, ctx.open), el("span", {}, page.text))),
    ),
  );
}
