// One whole page in a dialog: a fact with the versions of its key, a step, or a spilled part.

import { chip, copyButton, el, fill, moment, number, time } from "./dom.js";
import { pageActions } from "./edits.js";

export async function openPage(sheet, page, ctx) {
  const told = await ctx.get("page", { id: page, at: ctx.at });
  const { fact, step } = told;
  const again = (other) => ctx.open(other);
  const about = fact ? factAbout(fact, again, ctx.at) : step ? stepAbout(step) : [];
  const close = () => sheet.close();
  const jump = (at) => {
    close();
    ctx.go({ at });
  };
  fill(
    sheet,
    el(
      "div",
      { class: "head" },
      el("h2", { id: "page-title" }, fact ? `Fact ${page}` : step ? `Step ${page}` : page.startsWith("k") ? `Skill ${page}` : `Part ${page}`),
      about,
      el("button", { type: "button", class: "quiet close", "aria-label": "Close", on: { click: close } }, "✕"),
    ),
    told.parts?.length ? told.parts.map(said) : el("div", { class: "text whole" }, told.text || "(no text)"),
    told.versions?.length > 1 &&
      el(
        "div",
        { class: "group" },
        el("h3", {}, `All that was stored under “${fact.key}”`),
        el(
          "ol",
          { class: "near" },
          told.versions.map((version) =>
            el(
              "li",
              {},
              chip(version.page_id, again, !version.valid_until || new Date(version.valid_until) > new Date()),
              el("span", {}, version.text),
              el("span", { class: "told" }, span(version)),
            ),
          ),
        ),
      ),
    el(
      "div",
      { class: "buttons" },
      el(
        "button",
        {
          type: "button",
          class: "main",
          on: {
            click: () => {
              close();
              ctx.go({ tab: "trace", text: page });
            },
          },
        },
        "Trace it",
      ),
      step && el("button", { type: "button", on: { click: () => jump(page) } }, "Go to its request"),
      copyButton(() => told.text),
      !ctx.readOnly && pageActions(page, fact, told.pinned, ctx, close),
    ),
  );
  sheet.dataset.page = page;
  if (!sheet.open) sheet.showModal();
  sheet.scrollTop = 0;
}

// A piece of a step: what was said, a call, or its result, which stands behind it.
function said(part) {
  const kind = part.title === "error" ? "text whole bad" : part.title === "result" ? "text whole result" : "text whole";
  return [part.title && el("h3", { class: "part-title" }, part.title), el("div", { class: kind }, part.text || "(no text)")];
}

function span(fact) {
  return `${moment(fact.valid_from)} to ${fact.valid_until ? moment(fact.valid_until) : "now"}`;
}

function factAbout(fact, again, at) {
  const told = [`by ${fact.actor}`, `true from ${span(fact)}`];
  if (fact.key) told.unshift(`key ${fact.key}`);
  if (fact.sources.length) told.push(`from ${fact.sources.map(sourceText).join(" and ")}`);
  if (at) told.unshift("as it is now");
  if (fact.forgotten !== null) told.push(`ended: ${fact.forgotten}`);
  return [
    el(
      "p",
      { class: "told" },
      told.join(" · "),
      fact.superseded_by && [" · superseded by ", chip(fact.superseded_by, again)],
    ),
    el(
      "p",
      { class: "told" },
      "stored ",
      time(fact.at),
      fact.step !== "s0" && [" after ", chip(fact.step, again)],
      fact.tags.map((tag) => [" ", el("span", { class: "tag" }, tag)]),
    ),
  ];
}

function sourceText(source) {
  const name = source.name ? `${source.kind}:${source.name}` : source.kind;
  return source.via.length ? `${name} via ${source.via.join(", ")}` : name;
}

function stepAbout(step) {
  const where = step.resident ? "in the prompt" : "not in the prompt";
  const via = step.via.length ? ` · via ${step.via.join(", ")}` : "";
  return [el("p", { class: "told" }, `${step.who} · `, time(step.at), ` · ${number(step.tokens)} tokens · ${where}${via}`)];
}
