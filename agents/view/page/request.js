// The exact request of a step, piece by piece, and its difference from the one before.

import { address } from "./api.js";
import { chip, copyButton, difference, el, empty, fill, inOrder, number } from "./dom.js";

const shown = new WeakMap(); // panel -> the request that it shows

// While the agent runs, this is called after every commit. Unfolded pieces stay unfolded, and a past request, which
// never changes, is not drawn again: reading it or selecting text in it is not disturbed.
export async function request(root, ctx) {
  const before = root.hasChildNodes() && shown.get(root)?.asked === ctx.at ? shown.get(root) : null;
  const all = before && root.querySelector("[data-all]") ? 1 : null;
  const told = await ctx.get("request", { at: ctx.at, with: ctx.more.with, all });
  if (!ctx.current()) return;
  const { before: first, after: last } = told.change;
  if (ctx.more.with) ctx.note({ with: last === told.at ? first : last }); // any step stands for the request after it
  const says = JSON.stringify(told, (name, value) => (name === "tokens" ? undefined : value));
  if (told.at && before?.says === says) return;
  const open = before ? unfolded(root) : [];
  shown.set(root, { asked: ctx.at, says });
  if (!told.total) {
    fill(
      root,
      empty(
        "Nothing was sent to a model yet.",
        "Talk to it: ",
        el("code", {}, `selfpager chat ${ctx.agent}.yaml`),
        ". Each request then appears here, piece by piece.",
      ),
    );
    return;
  }
  fill(root, el("div", { class: "halves" }, pieces(told, ctx, all), change(told.change, ctx)));
  fold(root);
  for (const selector of open) root.querySelector(selector)?.click();
}

// The link that downloads the request.
function unfolded(root) {
  const texts = [...root.querySelectorAll("[data-key] .text:not(.folded)")];
  return [
    ...(root.querySelector("details[open]") ? [".piece.tools summary"] : []),
    ...texts.map((text) => `[data-key="${CSS.escape(text.closest("[data-key]").dataset.key)}"] .more`),
  ];
}

function pieces(told, ctx, all) {
  const raw =
    told.at &&
    el(
      "a",
      {
        class: "raw",
        href: `${address(ctx.agent, "raw")}?at=${told.at}`,
        download: `${ctx.agent}-${told.at}.json`,
      },
      "JSON as sent",
    );
  return el(
    "section",
    { class: "card", "aria-labelledby": "request-title" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "request-title" }, told.at ? `The request that ${told.at} answered` : "The next request"),
      el("p", { class: "told" }, `${told.total} pieces, ${number(told.tokens)} tokens`),
      raw,
    ),
    group("Before the conversation", told.prefix, ctx),
    group("The conversation", told.pieces, ctx, told.earlier > 0 && earlier(told, ctx), all),
  );
}

// For a long conversation only the newest pieces are drawn at first.
function earlier(told, ctx) {
  const button = el(
    "button",
    {
      type: "button",
      class: "more quiet",
      on: {
        click: async () => {
          const full = await ctx.get("request", { at: ctx.at, all: 1 });
          const list = button.nextElementSibling;
          button.remove();
          list.dataset.all = "yes";
          list.prepend(
            ...full.pieces.slice(0, full.pieces.length - told.pieces.length).map((piece) => row(piece, ctx)),
          );
          fold(list);
        },
      },
    },
    `${number(told.earlier)} earlier pieces`,
  );
  return button;
}

// Only a piece that is cut needs a button. All are measured before any is changed, so the page is laid out once.
function fold(root) {
  const bodies = [...root.querySelectorAll(".body")];
  const cut = bodies.map(({ firstChild }) => firstChild.scrollHeight > firstChild.clientHeight + 2);
  bodies.forEach((body, place) => {
    body.lastChild.hidden = !cut[place] && !body.dataset.more;
  });
}

function group(title, pieces, ctx, before = null, all = null) {
  if (!pieces.length) return null;
  const list = el("ol", { class: "pieces", "data-all": all });
  let tools = null;
  for (const piece of pieces) {
    if (piece.part !== "tools") {
      list.append(row(piece, ctx));
      continue;
    }
    if (!tools) {
      tools = { list: el("ol", { class: "pieces inner" }), count: 0, tokens: 0, head: el("summary") };
      list.append(el("li", { class: "piece tools" }, el("details", {}, tools.head, tools.list)));
    }
    tools.count += 1;
    tools.tokens += piece.tokens;
    tools.list.append(row(piece, ctx));
    fill(tools.head, head(`${tools.count} tools`, null, tools.tokens, ctx));
  }
  return el("div", { class: "group" }, el("h3", {}, title), before, list);
}

function head(title, page, tokens, ctx, copy = null) {
  return el(
    "span",
    { class: "piece-head" },
    el("span", { class: "piece-title" }, title),
    page && chip(page, ctx.open),
    copy,
    el("span", { class: "tokens" }, number(tokens)),
  );
}

function row(piece, ctx) {
  return el(
    "li",
    { class: `piece ${piece.part}`, "data-key": piece.key },
    head(piece.title, piece.page_id, piece.tokens, ctx, copyButton(() => whole(piece, ctx))),
    text(piece, ctx),
  );
}

async function whole(piece, ctx) {
  if (piece.characters === piece.text.length) return piece.text;
  return (await ctx.get("piece", { at: ctx.at, key: piece.key })).text;
}

// A long text shows its beginning; a click shows it all.
function text(piece, ctx) {
  const body = el("div", { class: "text folded" }, piece.text);
  const more = el("button", { type: "button", class: "more quiet" }, "show all");
  more.addEventListener("click", async () => {
    if (body.classList.toggle("folded")) {
      more.textContent = "show all";
      return;
    }
    more.textContent = "show less";
    if (piece.characters > piece.text.length) body.textContent = inOrder(await whole(piece, ctx));
  });
  return el("div", { class: "body", "data-more": piece.characters > piece.text.length }, body, more);
}

function change(told, ctx) {
  const nothing = !told.entered.length && !told.left.length && !told.changed.length;
  return el(
    "section",
    { class: "card change", "aria-labelledby": "change-title" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "change-title" }, between(told, ctx)),
      el("p", { class: "told" }, `${told.unchanged} pieces stayed as they were`),
      told.before && compared(told, ctx),
    ),
    told.opened && el("p", { class: "opened" }, el("b", {}, "A new epoch began: "), told.opened),
    nothing && el("p", { class: "none" }, "Nothing is different yet."),
    moved("Entered", "entered", told.entered, ctx),
    moved("Left", "left", told.left, ctx),
    rewritten(told.changed, ctx),
  );
}

function between(told, ctx) {
  if (!told.before) return "The first request";
  const link = (step, words) =>
    el("button", { type: "button", class: "link", on: { click: () => ctx.go({ at: step }) } }, words);
  if (told.neighbours) return ["What is different from ", link(told.before, `the one before, ${told.before}`)];
  return ["From ", link(told.before, told.before), " to ", told.after ? link(told.after, told.after) : "the next request"];
}

// Any other request: it is named here, or its column is clicked with Shift.
function compared(told, ctx) {
  const step = el("input", {
    type: "text",
    class: "other",
    placeholder: "s200",
    "aria-label": "Compare with the request that this step answered",
    value: ctx.more.with || "",
  });
  const submit = (event) => {
    event.preventDefault();
    ctx.go({ more: { with: step.value.trim() } });
  };
  return el(
    "form",
    { class: "compare", on: { submit } },
    step,
    el("button", { type: "submit" }, "Compare"),
    !told.neighbours &&
      el("button", { type: "button", class: "quiet", on: { click: () => ctx.go({ more: {} }) } }, "The one before"),
  );
}

function moved(title, kind, moves, ctx) {
  if (!moves.length) return null;
  const tokens = moves.reduce((sum, move) => sum + move.piece.tokens, 0);
  return el(
    "div",
    { class: "group" },
    el("h3", {}, title, el("span", { class: "told" }, ` ${number(tokens)} tokens`)),
    el(
      "ol",
      { class: `moves ${kind}` },
      moves.map((move) =>
        el(
          "li",
          { class: `piece ${move.piece.part}` },
          head(move.piece.title, move.piece.page_id, move.piece.tokens, ctx),
          el("p", { class: "why" }, move.why),
          el("p", { class: "line-of" }, move.piece.text.slice(0, 240)),
        ),
      ),
    ),
  );
}

function rewritten(changes, ctx) {
  if (!changes.length) return null;
  return el(
    "div",
    { class: "group" },
    el("h3", {}, "Changed"),
    el(
      "ol",
      { class: "moves changed" },
      changes.map((each) =>
        el(
          "li",
          { class: `piece ${each.piece.part}` },
          head(each.piece.title, each.piece.page_id, each.piece.tokens, ctx),
          el("p", { class: "why" }, each.why),
          difference(each.lines),
        ),
      ),
    ),
  );
}
