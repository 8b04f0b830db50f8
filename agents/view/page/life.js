// The whole life as a strip: how full the window was, and a frame around the requests that the chart shows.
//
// The frame is dragged to move along, at its edges to show more or fewer requests; a click puts it there.

import { el, fill, svg } from "./dom.js";

const TALL = 34;
const EDGE = 8; // pixels at each side of the frame that change its width
const LEAST_PERCENT = 0.8; // of a frame that would be too narrow to see

const numberOf = (step) => Number(step.slice(1));

export class LifeStrip {
  constructor(root, { show }) {
    this.root = root;
    this.show = show;
    this.spans = [];
    this.frame = el("div", { class: "frame" });
    root.addEventListener("pointerdown", (event) => this.grab(event));
  }

  get total() {
    return this.spans.reduce((sum, span) => sum + span.count, 0);
  }

  draw(spans) {
    this.spans = spans;
    const most = Math.max(1, ...spans.map((span) => span.used_tokens));
    let place = 0;
    let outline = `M0,${TALL}`;
    const epochs = [];
    spans.forEach((span, index) => {
      const high = TALL - (TALL - 4) * (span.used_tokens / most);
      outline += `L${place},${high}L${place + span.count},${high}`;
      if (index && span.epoch !== spans[index - 1].epoch) epochs.push(`M${place},0v4`);
      place += span.count;
    });
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${Math.max(1, place)} ${TALL}`, preserveAspectRatio: "none", width: "100%", height: TALL },
      svg("path", { d: `${outline}L${place},${TALL}z`, class: "outline" }),
      svg("path", { d: epochs.join(""), class: "epochs", "vector-effect": "non-scaling-stroke" }),
    );
    fill(this.root, picture, this.frame);
  }

  // The requests that are shown, by the steps of the first and the last.
  select(first, last) {
    if (!this.total) return;
    this.from = first ? this.place(numberOf(first)) : 0;
    this.to = last ? this.place(numberOf(last)) + 1 : this.total;
    this.put(this.from, this.to);
  }

  put(from, to) {
    const wide = Math.max(LEAST_PERCENT, (100 * (to - from)) / this.total);
    this.frame.style.left = `${Math.min(100 - wide, Math.max(0, (100 * from) / this.total))}%`;
    this.frame.style.width = `${Math.min(100, wide)}%`;
  }

  // The place of a step among the requests: within a span steps are taken as evenly spread.
  place(number) {
    let before = 0;
    for (const span of this.spans) {
      const [first, last] = [numberOf(span.first), numberOf(span.last)];
      if (number <= last) return before + (span.count * Math.max(0, number - first)) / (last - first + 1);
      before += span.count;
    }
    return before;
  }

  // The last step of so many requests around the middle of the frame; null if the newest are among them.
  around(requests) {
    const end = Math.max(requests, (this.from + this.to + requests) / 2);
    return end >= this.total - 0.5 ? null : this.stepAt(end);
  }

  later(step, requests) {
    return this.stepAt(this.place(numberOf(step)) + requests) || this.spans[this.spans.length - 1]?.last || step;
  }

  stepAt(place) {
    let before = 0;
    for (const span of this.spans) {
      if (place <= before + span.count) {
        const [first, last] = [numberOf(span.first), numberOf(span.last)];
        return `s${Math.round(first + ((last - first) * (place - before)) / span.count)}`;
      }
      before += span.count;
    }
    return null;
  }

  grab(event) {
    if (!this.total || this.from === undefined) return;
    event.preventDefault();
    const box = this.root.getBoundingClientRect();
    const at = (x) => (this.total * (x - box.left)) / box.width;
    const edge = (EDGE * this.total) / box.width;
    let { from, to } = this;
    const start = at(event.clientX);
    const wide = to - from;
    const onRight = wide > 4 * edge && Math.abs(start - to) < edge;
    const onLeft = !onRight && wide > 4 * edge && Math.abs(start - from) < edge;
    if (start < from - edge || start > to + edge) [from, to] = [start - wide / 2, start + wide / 2];
    const origin = { from, to };
    const drag = (move) => {
      const moved = at(move.clientX) - start;
      if (onLeft) from = Math.min(origin.from + moved, to - 1);
      else if (onRight) to = Math.max(origin.to + moved, from + 1);
      else {
        from = Math.max(0, Math.min(this.total - wide, origin.from + moved));
        to = from + wide;
      }
      this.put(from, to);
    };
    const drop = () => {
      removeEventListener("pointermove", drag);
      Object.assign(this, { from, to });
      this.show(to >= this.total - 0.5 ? null : this.stepAt(to), Math.max(1, Math.round(to - from)));
    };
    drag(event);
    addEventListener("pointermove", drag);
    addEventListener("pointerup", drop, { once: true });
  }
}
