// The panels in the order of the tabs. A panel draws itself into an element. A panel that is a long list returns
// that list, which is reloaded after a change; the others are drawn again.

import { cost, ledger } from "./events.js";
import { request } from "./request.js";
import { searches } from "./searches.js";
import { sleeps } from "./sleeps.js";
import { archive, core } from "./tiers.js";
import { trace } from "./trace.js";
import { turns } from "./turns.js";

export const PANELS = {
  request: { name: "Request", draw: request },
  core: { name: "Core", tier: "core", draw: core },
  turns: { name: "Turns", tier: "recall", draw: turns },
  archive: { name: "Archive", tier: "archival", draw: archive },
  sleeps: { name: "Sleeps", tier: "archival", draw: sleeps },
  ledger: { name: "Ledger", draw: ledger },
  searches: { name: "Searches", draw: searches },
  cost: { name: "Cost", draw: cost },
  trace: { name: "Trace", draw: trace },
};
