// The panels in the order of the tabs. A panel draws itself into an element. A panel that is a long list returns
// that list, which is reloaded after a change; the others are drawn again.

import { cost, ledger, searches } from "./events.js";
import { request } from "./request.js";
import { archive, core, turns } from "./tiers.js";
import { trace } from "./trace.js";

export const PANELS = {
  request: { name: "Request", draw: request, at: true },
  core: { name: "Core", tier: "core", draw: core, at: true },
  turns: { name: "Turns", tier: "recall", draw: turns },
  archive: { name: "Archive", tier: "archival", draw: archive },
  ledger: { name: "Ledger", draw: ledger },
  searches: { name: "Searches", draw: searches },
  cost: { name: "Cost", draw: cost },
  trace: { name: "Trace", draw: trace, at: true },
};
