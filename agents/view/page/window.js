// The window: how full it is and with what, many requests as columns, the whole life as a strip; and the way along the
// requests, which is faster than any answer.

import { here, write, writeSoon } from "./address.js";
import * as api from "./api.js";
import { Chart } from "./chart.js";
import { byId, el, fill, number } from "./dom.js";
import { LifeStrip } from "./life.js";
import { toast } from "./live.js";

const FEWEST = 8;
const MOST = 480;
const ZOOM = 1.6;
const LIFE_MS = 10_000; // between two loads of the whole life while the agent runs
const NARROW = matchMedia("(max-width: 700px)");

export class WindowCard {
  constructor({ go, arrive, compare, frame }) {
    this.arrive = arrive;
    this.frame = frame;
    this.now = null;
    this.told = null; // the columns, and what was asked for
    this.count = null; // of columns; null: as many as fit
    this.through = null; // the last column; null: the newest one, or the one that is shown
    this.owed = 0; // steps that were asked for before it was known where they lead
    this.life = { agent: null, newest: null, at: 0 };
    this.chart = new Chart(byId("chart"), {
      choose: (step, isOther) => (isOther && step && step !== here.at ? compare(step) : go({ at: step })),
    });
    this.strip = new LifeStrip(byId("life"), { show: (through, count) => this.reach(through, count) });
    byId("nearer").addEventListener("click", () => this.zoom(1 / ZOOM));
    byId("farther").addEventListener("click", () => this.zoom(ZOOM));
    byId("fold").addEventListener("click", () => this.fold(!this.folded, true));
    byId("chart").addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    const kept = localStorage.getItem("chart");
    this.fold(kept ? kept === "folded" : NARROW.matches, false);
  }

  fold(folded, keep) {
    this.folded = folded;
    if (keep) localStorage.setItem("chart", folded ? "folded" : "open");
    byId("graph").hidden = folded;
    byId("zoom").hidden = folded;
    byId("fold").setAttribute("aria-expanded", String(!folded));
    fill(byId("fold"), folded ? "Show chart" : "Hide chart");
    if (keep && !folded) this.look();
  }

  wheel(event) {
    if (!event.ctrlKey) return; // a pinch comes as this, too
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2);
  }

  zoom(by) {
    const shown = this.told?.columns.length || this.chart.room();
    const wanted = by > 1 ? Math.max(shown + 1, shown * by) : Math.min(this.room() - 1, shown * by);
    this.reach(this.through && this.strip.around(wanted), Math.round(wanted));
  }

  reach(through, count) {
    this.through = through;
    this.count = Math.max(FEWEST, Math.min(MOST, count));
    this.look();
  }

  room() {
    return this.count || this.chart.room();
  }

  // Forget where the way would have led: something else is shown.
  stop() {
    this.owed = 0;
  }

  async look() {
    const { agent, at } = here;
    this.follow(at);
    try {
      const [now, told] = await Promise.all([
        api.get(agent, "now", { at }),
        this.folded ? { parts: [], columns: [], agent, newest: true, folded: true } : this.columns(agent, at),
      ]);
      if (agent !== here.agent || at !== here.at) return;
      Object.assign(this, { now, told });
      if (now.at && now.at !== here.at) {
        here.at = now.at; // any step stands for the request after it
        write(false);
        this.frame();
      }
      this.draw();
      this.walkOn(at);
      if (!this.folded) this.drawLife(agent).catch((error) => toast(error.message, true)); // nobody waits for it
    } catch (error) {
      if (agent === here.agent) toast(error.message, true);
    }
  }

  // What was chosen in the strip stays until a request beyond it is shown.
  follow(at) {
    if (this.last === at) return;
    this.last = at;
    if (!this.told?.columns.some((column) => column.step === at)) this.through = null;
  }

  // Answered requests never change: among older columns that are there already, these stay.
  async columns(agent, at) {
    const limit = this.room();
    const { through } = this;
    const load = async (last) => ({ ...(await api.get(agent, "columns", { limit, through: last })), agent, limit });
    const same = this.told?.agent === agent && this.told.limit === limit && !this.told.newest;
    if (same && this.told.through === through && (through || this.told.columns.some((each) => each.step === at)))
      return this.told;
    if (through) return { ...(await load(through)), through, newest: false };
    const newest = await load(null);
    const step = at && Number(at.slice(1));
    if (!at || !newest.columns.length || step >= Number(newest.columns[0].step.slice(1)))
      return { ...newest, through, newest: true };
    return { ...(await load(this.beyond(at, limit))), through, newest: false };
  }

  // A step some columns later: what is shown stands in the middle, with a way in both directions.
  beyond(at, limit) {
    const later = this.life.agent === here.agent ? this.strip.later(at, limit / 2) : at;
    return Number(later.slice(1)) > Number(at.slice(1)) ? later : at;
  }

  async drawLife(agent) {
    const { columns, newest } = this.told;
    const last = newest ? columns[columns.length - 1]?.step : this.life.newest;
    const stale = last !== this.life.newest && performance.now() - this.life.at > LIFE_MS;
    if (agent !== this.life.agent || stale) {
      const { spans } = await api.get(agent, "life");
      if (agent !== here.agent) return;
      this.life = { agent, newest: last, at: performance.now() };
      this.strip.draw(spans);
      byId("life").hidden = spans.length < 2;
    }
    this.strip.select(columns[0]?.step, newest ? null : columns[columns.length - 1]?.step);
  }

  // --- along the requests

  walkOn(at) {
    if (!this.owed) return;
    const rest = this.owed - Math.sign(this.owed);
    const direction = this.owed - rest;
    this.owed = 0;
    this.stepBy(direction);
    if (here.at !== at) this.owed += rest; // else there is no other
  }

  // A held key is faster than any answer: within the drawn columns it moves along them, beyond them it waits.
  stepBy(direction) {
    const { now, told } = this;
    if (!now || !told || told.agent !== here.agent || (direction > 0 && !here.at)) return;
    const steps = [...told.columns.map((column) => column.step), ...(told.newest && !told.folded ? [null] : [])];
    const place = steps.indexOf(here.at);
    const next = place < 0 ? undefined : steps[place + direction];
    if (next !== undefined) this.move(next);
    else if (now.at !== here.at) this.owed += direction;
    else if (direction > 0 || now.before) this.move(direction > 0 ? now.after : now.before);
  }

  move(at) {
    here.at = at;
    writeSoon();
    this.arrive();
  }

  // --- drawing

  draw() {
    const { now, told } = this;
    const { window: held } = now;
    const sent = told.columns.length > 0;
    byId("chart").hidden = !sent;
    this.chart.show({
      parts: told.parts,
      columns: told.columns,
      next: sent && told.newest && !now.at ? nextColumn(held) : null,
      newest: told.newest,
      selected: now.at,
      base: here.more.with,
    });
    byId("nearer").disabled = told.columns.length <= FEWEST;
    byId("farther").disabled = told.columns.length < this.room() || this.room() >= MOST;
    fill(byId("window-told"), this.words(held, sent || held.used_tokens));
    fill(byId("step"), now.at || "now");
    byId("before").disabled = !now.before;
    byId("after").disabled = !now.at;
    byId("now").disabled = !now.at;
    const free = held.free_tokens === null ? [] : [{ name: "free", tokens: held.free_tokens }];
    fill(
      byId("legend"),
      [...held.parts.filter((part) => part.tokens), ...free].map((part) => el("li", {}, this.key(part))),
    );
  }

  words(held, sent) {
    if (!sent) return "Nothing was sent to a model yet.";
    const share = held.usable_tokens ? ` (${Math.round((100 * held.used_tokens) / held.usable_tokens)} %)` : "";
    const of = held.usable_tokens ? ` of ${number(held.usable_tokens)} tokens${share}` : " tokens";
    const epoch = held.epoch
      ? ` · epoch ${held.epoch} began: ${held.epoch_reason}${held.ended ? "; it has ended" : ""}`
      : "";
    return `${held.counted ? "" : "about "}${number(held.used_tokens)}${of}${epoch}`;
  }

  // A part of the window in the legend. A click shows it alone over time, another one all of them again.
  key(part) {
    const inside = [el("i", { class: `dot ${part.name}` }), el("span", {}, part.name), el("b", {}, number(part.tokens))];
    if (part.name === "free" || this.folded) return el("span", { class: "key" }, inside);
    const alone = this.chart.only === part.name;
    const isolate = () => {
      this.chart.isolate(alone ? null : part.name);
      this.draw();
      byId("legend").querySelector(`[data-part="${part.name}"]`)?.focus();
    };
    return el(
      "button",
      {
        type: "button",
        class: "key",
        "data-part": part.name,
        "aria-pressed": String(alone),
        title: alone ? "Show all parts" : `Show only ${part.name} over time`,
        on: { click: isolate },
      },
      inside,
    );
  }
}

function nextColumn(held) {
  const { thresholds } = held;
  return {
    step: null,
    tokens: held.parts.map((part) => part.tokens),
    used_tokens: held.used_tokens,
    usable_tokens: held.usable_tokens,
    thresholds: thresholds && [thresholds.notify_at, thresholds.evict_at, thresholds.evict_to],
    opened: "",
  };
}
