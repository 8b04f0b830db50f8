// The window over time: a column per request, divided into the parts of the window. The last one is the next request.

import { el, fill, moment, number, svg } from "./dom.js";

const TALL = 168;
const LABELS = 64; // pixels at the right for the names of the thresholds
const NARROWEST = 6;
const WIDEST = 26;

export class Chart {
  constructor(root, { choose, older }) {
    this.root = root;
    this.choose = choose;
    this.older = older;
    this.tip = el("div", { class: "tip", hidden: true });
    this.data = null;
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

  draw() {
    if (!this.data) return;
    const { parts, columns, next, selected } = this.data;
    const all = next ? [...columns, next] : columns;
    const wide = this.root.clientWidth;
    const space = wide - LABELS;
    const each = Math.min(WIDEST, space / Math.max(1, all.length));
    const most = Math.max(1, ...all.map((column) => Math.max(column.usable_tokens || 0, column.used_tokens)));
    const y = (tokens) => TALL - (TALL * tokens) / most;
    const picture = svg("svg", { width: wide, height: TALL + 30, role: "img", "aria-label": this.told(all) });
    const last = all[all.length - 1];
    if (last?.thresholds) picture.append(...this.thresholds(last, space, y));
    all.forEach((column, place) => picture.append(this.column(column, parts, place * each, each, y, selected)));
    const hits = all.map((column, place) => this.hit(column, parts, place * each, each, selected));
    fill(this.root, picture, el("div", { class: "hits" }, hits), this.tip, this.olderButton(columns));
  }

  told(all) {
    const last = all[all.length - 1];
    return `${all.length} requests; the last one has ${number(last?.used_tokens || 0)} tokens.`;
  }

  thresholds(column, space, y) {
    const [notify, evict, to] = column.thresholds;
    const names = [
      ["usable", column.usable_tokens],
      ["evict", evict],
      ["notify", notify],
      ["evict to", to],
    ];
    let lowest = -2;
    return names
      .filter(([, tokens]) => tokens)
      .flatMap(([name, tokens]) => {
        const at = y(tokens) + 0.5;
        const label = Math.max(at + 4, lowest + 12);
        lowest = label;
        return [
          svg("line", { x1: 0, x2: space, y1: at, y2: at, class: `level ${name.replace(" ", "-")}` }),
          svg("text", { x: space + 8, y: label, class: "level-name" }, name),
        ];
      });
  }

  column(column, parts, x, each, y, selected) {
    const gap = each > 10 ? 2 : 1;
    const group = svg("g", {
      class: `column${column.step === selected ? " chosen" : ""}${column.step ? "" : " next"}`,
    });
    if (column.step === selected) group.append(svg("rect", { x, y: 0, width: each, height: TALL, class: "band" }));
    if (column.opened) {
      group.append(svg("line", { x1: x, x2: x, y1: 4, y2: TALL, class: "epoch" }));
      group.append(svg("path", { d: `M${x - 4},0h8l-4,6z`, class: "epoch-mark" }));
    }
    let below = 0;
    parts.forEach((name, place) => {
      const tokens = column.tokens[place];
      if (!tokens) return;
      group.append(
        svg("rect", {
          x: x + gap / 2,
          width: Math.max(1, each - gap),
          y: y(below + tokens),
          height: Math.max(0.5, y(below) - y(below + tokens)),
          class: `part ${name}`,
        }),
      );
      below += tokens;
    });
    if (column.step === selected)
      group.append(svg("rect", { x: x + 1, y: TALL + 3, width: each - 2, height: 3, class: "under" }));
    return group;
  }

  hit(column, parts, x, each, selected) {
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
        click: () => this.choose(column.step),
        pointerenter: () => this.point(column, parts, x + each / 2),
        pointerleave: () => {
          this.tip.hidden = true;
        },
      },
    });
  }

  point(column, parts, x) {
    const rows = parts
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

  olderButton(columns) {
    if (!columns.length || !this.data.more) return null;
    return el(
      "button",
      { type: "button", class: "older quiet", on: { click: () => this.older(columns[0].step) } },
      "older",
    );
  }
}
