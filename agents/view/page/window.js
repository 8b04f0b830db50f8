// The window: the newest requests as columns, how full it is, and with what.

import * as api from "./api.js";
import { byId, el, fill, number } from "./dom.js";

// The newest requests, or those up to the one that is shown if that is further back. Answered requests never change:
// if it is among the older ones already `shown`, these stay.
export async function columnsAround(agent, at, limit, shown) {
  if (shown?.agent === agent && !shown.newest && shown.columns.some((column) => column.step === at)) return shown;
  const newest = await api.get(agent, "columns", { limit });
  const number = at && Number(at.slice(1));
  if (!at || !newest.columns.length || number >= Number(newest.columns[0].step.slice(1)))
    return { ...newest, agent, newest: true };
  return { ...(await api.get(agent, "columns", { limit, through: at })), agent, newest: false };
}

export function drawWindow(chart, now, told) {
  const { window: held } = now;
  const next = !told.newest
    ? null
    : {
        step: null,
        tokens: held.parts.map((part) => part.tokens),
        used_tokens: held.used_tokens,
        usable_tokens: held.usable_tokens,
        thresholds: held.thresholds && [held.thresholds.notify_at, held.thresholds.evict_at, held.thresholds.evict_to],
        opened: "",
      };
  const sent = told.columns.length > 0;
  byId("chart").hidden = !sent;
  chart.show({
    parts: told.parts,
    columns: told.columns,
    next: sent && !now.at ? next : null,
    newest: told.newest,
    selected: now.at,
    more: told.columns.length >= chart.room(),
  });
  const share = held.usable_tokens ? ` (${Math.round((100 * held.used_tokens) / held.usable_tokens)} %)` : "";
  const of = held.usable_tokens ? ` of ${number(held.usable_tokens)} tokens${share}` : " tokens";
  const epoch = held.epoch
    ? ` · epoch ${held.epoch} began: ${held.epoch_reason}${held.ended ? "; it has ended" : ""}`
    : "";
  fill(
    byId("window-told"),
    sent || held.used_tokens
      ? `${held.counted ? "" : "about "}${number(held.used_tokens)}${of}${epoch}`
      : "Nothing was sent to a model yet.",
  );
  fill(byId("step"), now.at || "now");
  byId("before").disabled = !now.before;
  byId("after").disabled = !now.at;
  byId("now").disabled = !now.at;
  const parts = [
    ...held.parts.filter((part) => part.tokens),
    ...(held.free_tokens === null ? [] : [{ name: "free", tokens: held.free_tokens }]),
  ];
  fill(
    byId("legend"),
    parts.map((part) =>
      el("li", {}, el("i", { class: `dot ${part.name}` }), el("span", {}, part.name), el("b", {}, number(part.tokens))),
    ),
  );
}
