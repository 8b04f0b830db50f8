// The window over time: a column per request, divided into the parts of the window. The last one is the next request.
//
// `only` shows one part alone, on a scale of its own: its tokens over time.

import { el, fill, moment, number, svg } from "./dom.js";

const TALL = 168;
const LABELS = 64; // pixels at the right for the names of the thresholds
const NARROWEST = 6;
const WIDEST = 26;

export class Chart {
  constructor(root, { choose }) {
    this.root = root;
    this.choose = choose;
    this.tip = el("div", { class: "tip", hidden: true });
    this.data = null;
    this.only = null;
    new ResizeObserver(() => this.draw()).observe(root);
  }

  // The number of columns that fit.
  room() {
    return Math.max(12, Math.min(120, Math.floor((this.root.clientWidth - LABELS) / (NARROWEST + 3))));
  }

  // The next request is loaded when it is shown, and stays valid while the newest answered request is the same.
  show(data) {
    const last = (told) => told?.columns[told.columns.length - 1]?.step;
    const next = data.next || (data.newest && last(data) === last(this.data) ? this.data?.next : null);
    this.data = { ...data, next };
    this.draw();
  }

  select(step) {
    if (!this.data || this.data.selected === step) return;
    this.data = { ...this.data, selected: step };
    this.draw();
  }

  isolate(part) {
    this.only = part;
    this.draw();
  }

  // The tokens of a column that are drawn, part by part.
  drawn(column) {
    return this.data.parts.map((name, place) => (!this.only || this.only === name ? column.tokens[place] : 0));
  }

  draw() {
    if (!this.data || !this.root.clientWidth) return;
    const { columns, next, selected, base } = this.data;
    const all = next ? [...columns, next] : columns;
    const wide = this.root.clientWidth;
    const space = wide - LABELS;
    const each = Math.min(WIDEST, space / Math.max(1, all.length));
    const sums = all.map((column) => this.drawn(column).reduce((sum, tokens) => sum + tokens, 0));
    const most = Math.max(1, ...sums, ...(this.only ? [] : all.map((column) => column.usable_tokens || 0)));
    const y = (tokens) => TALL - (TALL * tokens) / most;
    const picture = svg("svg", { width: wide, height: TALL + 30, role: "img", "aria-label": this.told(all, sums) });
    const last = all[all.length - 1];
    if (this.only) picture.append(...levels([["most", most]], space, y));
    else if (last?.thresholds) picture.append(...this.thresholds(last, space, y));
    all.forEach((column, place) => picture.append(...marks(column, place * each, each, selected, base)));
    picture.append(...this.stacks(all, each, y));
    const hits = all.map((column, place) => this.hit(column, place * each, each, selected));
    fill(this.root, picture, el("div", { class: "hits" }, hits), this.tip);
  }

  told(all, sums) {
    const of = this.only ? ` of ${this.only}` : "";
    return `${all.length} requests; the last one has ${number(sums[sums.length - 1] || 0)} tokens${of}.`;
  }

  // One path for each part over all columns, and paler ones for the next request.
  stacks(all, each, y) {
    const gap = each > 10 ? 2 : each > 4 ? 1 : 0;
    const paths = new Map();
    all.forEach((column, place) => {
      let below = 0;
      this.drawn(column).forEach((tokens, part) => {
        if (!tokens) return;
        const [top, bottom] = [y(below + tokens), y(below)];
        const shape = `M${place * each + gap / 2},${bottom}V${Math.min(top, bottom - 0.5)}h${each - gap}V${bottom}z`;
        const key = `part ${this.data.parts[part]}${column.step ? "" : " next"}`;
        paths.set(key, (paths.get(key) || "") + shape);
        below += tokens;
      });
    });
    return [...paths].map(([kind, d]) => svg("path", { class: kind, d }));
  }

  thresholds(column, space, y) {
    const [notify, evict, to] = column.thresholds;
    const names = [
      ["usable", column.usable_tokens],
      ["evict", evict],
      ["notify", notify],
      ["evict to", to],
    ];
    return levels(names, space, y);
  }

  hit(column, x, each, selected) {
    const name = column.step ? `The request that ${column.step} answered` : "The next request";
    return el("button", {
      type: "button",
      class: "hit",
      tabindex: "-1",
      "data-step": column.step || "now",
      "aria-label": `${name}: ${number(column.used_tokens)} tokens`,
      "aria-current": column.step === selected ? "step" : null,
      style: { left: `${x}px`, width: `${each}px`, height: `${TALL + 8}px` },
      on: {
        click: (event) => this.choose(column.step, event.shiftKey),
        pointerenter: () => this.point(column, x + each / 2),
        pointerleave: () => {
          this.tip.hidden = true;
        },
      },
    });
  }

  point(column, x) {
    const rows = this.data.parts
      .map((name, place) => [name, column.tokens[place]])
      .filter(([, tokens]) => tokens)
      .reverse();
    fill(
      this.tip,
      el("strong", {}, column.step ? `${column.step} answered` : "The next request"),
      el(
        "span",
        { class: "told" },
        `${number(column.used_tokens)} tokens${column.at ? ` · ${moment(column.at)}` : ""}`,
      ),
      column.opened && el("span", { class: "opened" }, `A new epoch: ${column.opened}`),
      el(
        "ul",
        {},
        rows.map(([name, tokens]) =>
          el("li", {}, el("i", { class: `dot ${name}` }), el("span", {}, name), el("b", {}, number(tokens))),
        ),
      ),
    );
    this.tip.hidden = false;
    const wide = this.root.clientWidth;
    const left = Math.min(Math.max(0, x - this.tip.offsetWidth / 2), Math.max(0, wide - this.tip.offsetWidth));
    this.tip.style.left = `${left}px`;
  }
}

// What stands behind and below a column: the chosen one, the one it is compared with, the start of an epoch.
function marks(column, x, each, selected, base) {
  const found = [];
  const under = (kind) => svg("rect", { x: x + 1, y: TALL + 3, width: Math.max(2, each - 2), height: 3, class: kind });
  if (column.step === selected)
    found.push(svg("rect", { x, y: 0, width: each, height: TALL, class: "band" }), under("under"));
  if (base && column.step === base) found.push(under("under base"));
  if (column.opened)
    found.push(
      svg("line", { x1: x, x2: x, y1: 4, y2: TALL, class: "epoch" }),
      svg("path", { d: `M${x - 4},0h8l-4,6z`, class: "epoch-mark" }),
    );
  return found;
}

function levels(names, space, y) {
  let lowest = -2;
  return names
    .filter(([, tokens]) => tokens)
    .flatMap(([name, tokens]) => {
      const at = y(tokens) + 0.5;
      const label = Math.max(at + 4, lowest + 12);
      lowest = label;
      return [
        svg("line", { x1: 0, x2: space, y1: at, y2: at, class: `level ${name.replace(" ", "-")}` }),
        svg("text", { x: space + 8, y: label, class: "level-name" }, name === "most" ? number(tokens) : name),
      ];
    });
}
