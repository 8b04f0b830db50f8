// A list of any length in a box that scrolls. Only the rows in sight are in the page; they are loaded in sections.
//
// `load(offset, limit)` answers {total, rows}, newest first; `row(data, index)` draws one. All rows are equally high.

import { el, fill } from "./dom.js";

const PIECE = 100;
const BEYOND = 12; // rows drawn above and below what is in sight
const TALLEST = 8_000_000; // pixels; browsers stop somewhere beyond
const MOST_PIECES = 30;

export class LongList {
  constructor({ load, row, height, label, nothing }) {
    Object.assign(this, { load, row, height, nothing });
    this.pieces = new Map();
    this.total = null;
    this.turn = 0;
    this.space = el("div", { class: "space" });
    this.box = el("div", { class: "long", role: "list", "aria-label": label, tabindex: "0" }, this.space);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.box);
    this.count = el("p", { class: "count", role: "status" });
    this.element = el("div", { class: "listing" }, this.box, this.count);
  }

  // Start from the top (another filter), or reload the rows in sight (something was added).
  async reset() {
    this.box.scrollTop = 0;
    this.total = null;
    await this.again();
  }

  async again() {
    this.turn += 1;
    this.stale = this.pieces;
    this.pieces = new Map();
    await this.piece(Math.floor(this.first() / PIECE));
  }

  rowHeight() {
    return typeof this.height === "function" ? this.height() : this.height;
  }

  // Scrolling is one to one, except in a list that would be too tall for a browser: there a pixel moves more.
  scale() {
    const whole = (this.total || 0) * this.rowHeight();
    return whole > TALLEST ? (whole - this.box.clientHeight) / (TALLEST - this.box.clientHeight) : 1;
  }

  first() {
    return Math.floor((this.box.scrollTop * this.scale()) / this.rowHeight());
  }

  async piece(at) {
    if (this.pieces.has(at)) return;
    const turn = this.turn;
    this.pieces.set(at, null);
    let told;
    try {
      told = await this.load(at * PIECE, PIECE);
    } catch (error) {
      if (turn !== this.turn) return;
      this.pieces.delete(at);
      fill(this.count, String(error.message || error));
      return;
    }
    if (turn !== this.turn) return;
    this.pieces.set(at, told.rows);
    if (this.pieces.size > MOST_PIECES) this.pieces.delete(this.pieces.keys().next().value);
    this.total = told.total;
    this.draw();
  }

  at(index) {
    const rows = this.pieces.get(Math.floor(index / PIECE)) || this.stale?.get(Math.floor(index / PIECE));
    return rows ? rows[index % PIECE] : undefined;
  }

  draw() {
    if (this.total === null) return;
    const height = this.rowHeight();
    const whole = Math.min(this.total * height, TALLEST);
    this.box.classList.toggle("none", this.total === 0);
    this.box.setAttribute("role", this.total === 0 ? "group" : "list"); // a list has rows
    if (this.total === 0) {
      this.space.style.height = "auto";
      fill(this.space, this.nothing());
      fill(this.count);
      return;
    }
    this.space.style.height = `${whole}px`;
    const first = this.first();
    const seen = Math.ceil(this.box.clientHeight / height);
    const from = Math.max(0, first - BEYOND);
    const to = Math.min(this.total, first + seen + BEYOND);
    const top = this.scale() === 1 ? from * height : this.box.scrollTop - (first - from) * height;
    const drawn = [];
    for (let index = from; index < to; index += 1) {
      const data = this.at(index);
      const place = {
        position: "absolute",
        top: `${Math.max(0, top) + (index - from) * height}px`,
        height: `${height}px`,
      };
      const inside = data !== undefined ? this.row(data, index) : el("span", { class: "waits" });
      drawn.push(
        el(
          "div",
          {
            class: "row",
            role: "listitem",
            style: place,
            "aria-setsize": this.total,
            "aria-posinset": index + 1,
          },
          inside,
        ),
      );
    }
    const focused = this.space.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    fill(this.space, drawn);
    if (focused) this.space.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    fill(
      this.count,
      `${(first + 1).toLocaleString("en-US")} to ${Math.min(this.total, first + seen).toLocaleString(
        "en-US",
      )} of ${this.total.toLocaleString("en-US")}`,
    );
    for (const at of new Set([Math.floor(from / PIECE), Math.floor(Math.max(from, to - 1) / PIECE)])) this.piece(at);
  }

  close() {
    this.turn += 1;
    this.watch.disconnect();
  }
}
