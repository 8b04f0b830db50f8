// Why the agent forgot a text: the answer first, then the life of the text.

import { chip, el, empty, fill, instant, number, tierOf } from "./dom.js";

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
  const told = await ctx.get("trace", { text: ctx.text, at: ctx.at });
  if (!ctx.current()) return;
  root.dataset.text = ctx.text;
  fill(root, el("div", { class: "aside" }, answer(told, ctx), near(told, ctx)), life(told, ctx));
}

function answer(told, ctx) {
  const { verdict } = told;
  const when = verdict.at ? `in the request that ${verdict.at} answered` : "in the prompt now";
  const is = verdict.at ? "was" : "is";
  const places = verdict.places.map((place) =>
    el(
      "li",
      { class: `piece ${place.part}` },
      el("span", { class: "piece-title" }, place.title),
      place.page_id && chip(place.page_id, ctx.open),
    ),
  );
  if (verdict.more_places) places.push(el("li", { class: "told" }, `and ${number(verdict.more_places)} more`));
  return el(
    "section",
    { class: `card answer ${verdict.present ? "yes" : "no"}`, "aria-labelledby": "answer-title" },
    el("p", { class: "asked" }, `“${told.text}”`),
    el("h2", { id: "answer-title" }, `It ${is} ${verdict.present ? "" : "not "}${when}.`),
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

function life(told, ctx) {
  if (!told.events.length) return null;
  return el(
    "section",
    { class: "card", "aria-labelledby": "life-title" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "life-title" }, "Its life"),
      told.more && el("p", { class: "told" }, "It stands in more places; a longer piece of the text finds fewer."),
    ),
    el(
      "ol",
      { class: "life" },
      told.events.map((event) =>
        el(
          "li",
          { class: `moment ${event.found === false ? "missed" : tierOf(event.event)}` },
          el(
            "span",
            { class: "moment-head" },
            event.step
              ? el(
                  "button",
                  {
                    type: "button",
                    class: "after link",
                    title: `Go to the request after ${event.step}`,
                    on: { click: () => ctx.go({ at: event.step }) },
                  },
                  event.step,
                )
              : null,
            el("b", {}, event.found === null ? event.event.replace("_", " ") : event.found ? "found" : "missed"),
            instant(event.at),
          ),
          el("p", {}, linked(event.text, ctx)),
        ),
      ),
    ),
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
