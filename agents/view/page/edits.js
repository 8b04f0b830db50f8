// Forms for changes, and the outcome of those that were sent.

import { el, fill } from "./dom.js";

async function sent(ctx, form, kind, values) {
  const button = form.querySelector("button[type=submit]");
  if (button) button.disabled = true;
  try {
    const done = await ctx.edit(kind, values);
    return done.state !== "refused";
  } catch {
    return false; // it was told already
  } finally {
    if (button) button.disabled = false;
  }
}

// Replaces the whole block. If somebody changed it meanwhile, the old text is not found and the edit is refused.
export function editBlock(card, block, ctx) {
  const text = el("textarea", {
    class: "editor",
    rows: Math.min(16, block.value.split("\n").length + 2),
    "aria-label": `The block ${block.name}`,
    value: block.value,
  });
  const form = el(
    "form",
    {
      class: "editing",
      on: {
        submit: async (event) => {
          event.preventDefault();
          const kind = block.value ? "core_replace" : "core_append";
          const values = block.value
            ? { block: block.name, old_text: block.value, new_text: text.value }
            : { block: block.name, text: text.value };
          if (text.value === block.value || (await sent(ctx, form, kind, values))) close();
        },
      },
    },
    text,
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "submit", class: "main" }, "Save"),
      el("button", { type: "button", on: { click: () => close() } }, "Cancel"),
    ),
  );
  const close = () => {
    form.remove();
    ctx.refresh();
  };
  card.querySelector(".value").replaceWith(form);
  card.querySelector(".head button")?.remove();
  text.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  text.focus();
}

export function tellAgent(ctx) {
  const text = el("input", {
    type: "text",
    class: "message",
    placeholder: "A message to the agent, taken at its next step",
    "aria-label": "A message to the agent",
  });
  const form = el(
    "form",
    {
      class: "tell",
      on: {
        submit: async (event) => {
          event.preventDefault();
          if (text.value.trim() && (await sent(ctx, form, "message", { text: text.value }))) text.value = "";
        },
      },
    },
    text,
    el("button", { type: "submit" }, "Send"),
  );
  return form;
}

export function addFact(ctx) {
  const text = el("input", { type: "text", placeholder: "A fact", "aria-label": "A fact", required: true });
  const key = el("input", { type: "text", placeholder: "key (one current fact each)", "aria-label": "Key" });
  const tags = el("input", { type: "text", placeholder: "tags, with commas", "aria-label": "Tags" });
  const form = el(
    "form",
    {
      class: "adding",
      on: {
        submit: async (event) => {
          event.preventDefault();
          const given = tags.value
            .split(",")
            .map((tag) => tag.trim())
            .filter(Boolean);
          const values = {
            text: text.value,
            ...(key.value.trim() && { key: key.value.trim() }),
            ...(given.length && { tags: given }),
          };
          if (await sent(ctx, form, "archive", values)) {
            form.reset();
            details.open = false;
          }
        },
      },
    },
    text,
    key,
    tags,
    el("button", { type: "submit", class: "main" }, "Add"),
  );
  const details = el("details", { class: "add" }, el("summary", {}, "Add a fact"), form);
  return details;
}

// The actions for a page: pin it, page it out, or end it if it is a fact.
export function pageActions(page, fact, pinned, ctx, close) {
  const act = async (kind, values) => {
    if (await sent(ctx, bar, kind, values)) close();
  };
  const over = fact && (fact.purged || fact.forgotten !== null || fact.superseded_by);
  const reason = el("input", { type: "text", placeholder: "why it ends", "aria-label": "Why it ends", required: true });
  const bar = el(
    "div",
    { class: "buttons" },
    pinned
      ? el("button", { type: "button", on: { click: () => act("page_out", { page_id: page }) } }, "Page out")
      : el("button", { type: "button", on: { click: () => act("pin", { page_id: page }) } }, "Pin"),
    fact &&
      !over &&
      el(
        "form",
        {
          class: "ending",
          on: {
            submit: (event) => {
              event.preventDefault();
              act("forget", { page_id: page, reason: reason.value });
            },
          },
        },
        reason,
        el("button", { type: "submit" }, "Forget"),
      ),
  );
  return bar;
}

// Decides about a sleep, or about one edit of it.
export async function decide(button, ctx, kind, sleep, edit) {
  button.disabled = true;
  try {
    await ctx.edit(kind, { sleep: String(sleep), ...(edit !== undefined && { edits: [String(edit)] }) });
    ctx.refresh();
  } catch {
    button.disabled = false; // it was told already
  }
}

// Commands that the agent's process refused: the reason, and what was typed, until the person puts them away.
const away = new Set();

export function refused(root, commands) {
  const shown = commands.filter((command) => !away.has(command.id));
  root.hidden = !shown.length;
  fill(
    root,
    el("b", {}, "Refused:"),
    el(
      "ul",
      {},
      shown.map((command) =>
        el(
          "li",
          {},
          `${command.why} `,
          el("span", { class: "event recall" }, command.kind.replace("_", " ")),
          ` ${typed(command)} `,
          el(
            "button",
            {
              type: "button",
              class: "quiet",
              on: {
                click: () => {
                  away.add(command.id);
                  refused(root, commands);
                },
              },
            },
            "Put away",
          ),
        ),
      ),
    ),
  );
}

// The block and the text that was typed, or the id of the page.
function typed({ arguments: given }) {
  return [given?.block, given?.new_text ?? given?.text ?? given?.page_id ?? given?.sleep].filter(Boolean).join(": ");
}

// The commands that are pending.
export function waiting(root, commands, running) {
  root.hidden = !commands.length;
  const whom = running ? `process ${running.pid}, which takes it at its next step` : "the agent to be started";
  fill(
    root,
    el("b", {}, `Waiting for ${whom}:`),
    el(
      "ul",
      {},
      commands.map((command) =>
        el(
          "li",
          {},
          el("span", { class: "event recall" }, command.kind.replace("_", " ")),
          " ",
          typed(command).slice(0, 160),
        ),
      ),
    ),
  );
}
