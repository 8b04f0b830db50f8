// Elements and texts. Whatever an agent remembers only goes into text nodes: nothing here parses markup.

const TOLD = new Set(["title", "aria-label", "placeholder"]);

export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (name === "style") for (const [rule, how] of Object.entries(value)) made.style.setProperty(rule, how);
    else if (name === "value" || name === "disabled" || name === "hidden") made[name] = value;
    else made.setAttribute(name, value === true ? "" : TOLD.has(name) ? inOrder(String(value)) : value);
  }
  return put(made, children);
}

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(name, value);
  }
  return put(made, children);
}

function put(parent, children) {
  const kept = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  parent.append(...kept.map((child) => (typeof child === "string" ? inOrder(child) : child)));
  return parent;
}

// Characters that turn the direction of writing, or that are not seen, are made visible. Joiners and tags stay where
// emoji and some scripts need them, and a selector behind what it selects.
const UNSEEN = new RegExp(
  "(?<![\\p{So}\\p{Sk}\\ufe0f\\u0600-\\u08ff\\u0900-\\u0dff\\u1000-\\u109f\\u1780-\\u18af\\ufb50-\\ufefc])[\\u200c\\u200d]|" +
    "(?<!\\u{1f3f4}[\\u{e0020}-\\u{e007e}]{0,6})[\\u{e0000}-\\u{e007f}]|(?<=[\\ufe00-\\ufe0f\\s])[\\ufe00-\\ufe0f]|" +
    "(?<!\\p{Script=Han})[\\u{e0100}-\\u{e01ef}]|(?![\\u200c\\u200d\\u{e0000}-\\u{e01ef}\\n\\t])[\\p{Cc}\\p{Cf}\\p{Co}]|" +
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2028\\u2029\\u2800\\u3164\\uffa0]",
  "gu",
);

export function inOrder(text) {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, children);
}

export const byId = (id) => document.getElementById(id);

const WHOLE = new Intl.NumberFormat("en-US");

export const number = (value) => WHOLE.format(value);

export const dollars = (value) => `$${value.toFixed(value < 1 ? 4 : 2)}`;

// To the second: things follow each other closely.
export function moment(iso) {
  return iso ? iso.slice(0, 19).replace("T", " ") : "";
}

export const time = (iso) => el("time", { datetime: iso, title: iso, class: "at" }, moment(iso));

// The tier of an event, which gives its colour.
const TIERS = {
  core: "core",
  archive: "archival",
  repeat: "archival",
  supersede: "archival",
  forget: "archival",
  expire: "archival",
  end: "archival",
  restore: "archival",
  reopen: "archival",
  sleep: "archival",
  source: "archival",
  recall: "archival",
  page_out: "archival",
  embedder: "archival",
  index: "archival",
  error: "warning",
  interrupted: "warning",
  purge: "warning",
};

export const tierOf = (event) => TIERS[event] || "recall";

// "Recalled" means one thing on screen: put behind a message unasked. The tier is the conversation.
export const eventName = (event) => (event === "recall" ? "recalled" : event.replace("_", " "));

const TIER_NAMES = { recall: "conversation", archive: "archive", memory: "conversation and archive" };

export const tierName = (tier) => TIER_NAMES[tier] || tier;

const KINDS = { f: "archival", s: "recall", x: "recall" };

// The id of a page, as a button that opens it.
export function chip(page, open, solid = true) {
  const kind = KINDS[page.split("/").pop()[0]] || "recall";
  return el(
    "button",
    {
      type: "button",
      class: `chip ${kind}${solid ? "" : " gone"}`,
      title: `Open ${page}`,
      on: {
        click: (event) => {
          event.stopPropagation();
          open(page);
        },
      },
    },
    page,
  );
}

// The names of a list's columns, in a line that looks like its rows.
export function heads(kind, columns) {
  const cells = columns.map(([name, place]) => el("span", { class: place }, name));
  return el("div", { class: `line ${kind} heads`, "aria-hidden": "true" }, cells);
}

const COPIED_MS = 1_500;

// A button that copies a text, which is made when it is pressed.
export function copyButton(text, label = "Copy") {
  const button = el("button", { type: "button", class: "quiet copy", title: `${label} to the clipboard` }, label);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    await navigator.clipboard.writeText(await text());
    fill(button, "Copied");
    setTimeout(() => fill(button, label), COPIED_MS);
  });
  return button;
}

// A step as a button that goes to the request after it.
export function stepLink(step, ctx) {
  if (!step || step === "s0") return el("span", { class: "after" });
  const go = { click: () => ctx.go({ at: step }) };
  return el(
    "button",
    { type: "button", class: "after link", title: `Go to the request after ${step}`, on: go },
    step,
  );
}

// Buttons of which one is pressed; `choose` gets its name.
export function choices(label, names, chosen, choose) {
  const buttons = Object.entries(names).map(([name, title]) =>
    el(
      "button",
      {
        type: "button",
        class: "choice",
        "aria-pressed": String(name === chosen),
        on: {
          click: (event) => {
            for (const each of event.target.parentElement.children)
              each.setAttribute("aria-pressed", String(each === event.target));
            choose(name);
          },
        },
      },
      title,
    ),
  );
  return el("div", { class: "choices", role: "group", "aria-label": label }, buttons);
}

const TYPED_MS = 160; // after the last key

export function searchField(placeholder, label, value, search) {
  let wait = 0;
  const text = el("input", {
    type: "search",
    class: "filter",
    placeholder,
    "aria-label": label,
    value,
    on: {
      input: () => {
        clearTimeout(wait);
        wait = setTimeout(() => search(text.value.trim()), TYPED_MS);
      },
    },
  });
  return text;
}

const AGES = [
  [365 * 86_400, "y"],
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

// How long ago, in its largest unit.
export function age(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  const [size, unit] = AGES.find(([least]) => seconds >= least) || [1, "s"];
  return el("span", { class: "age", title: iso }, `${Math.floor(seconds / size)} ${unit}`);
}

// Who has an agent open: a worker by its address, any other process by its number.
export const runner = ({ pid, url }) => (url ? `at ${url.replace(/^https?:\/\//, "")}` : `process ${pid}`);

export function empty(title, ...hint) {
  return el("div", { class: "empty" }, el("p", { class: "empty-title" }, title), el("p", {}, ...hint));
}

// The lines of a difference, as the server sends them: [sign, line].
export function difference(lines) {
  if (!lines.length) return el("p", { class: "none" }, "empty");
  const names = { "+": "entered", "-": "left", "~": "hidden", " ": "" };
  return el(
    "div",
    { class: "diff", role: "group", "aria-label": "What changed" },
    lines.map(([sign, line]) =>
      el(
        "div",
        { class: `line ${names[sign]}` },
        el("span", { class: "sign", "aria-label": names[sign] || null }, sign === "~" ? "⋯" : sign),
        el("span", {}, sign === "~" ? `${line} more lines` : line || " "),
      ),
    ),
  );
}
