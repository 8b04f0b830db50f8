// Requests to the server. Addresses are relative: the token in the page's own address is part of them.

export class Failed extends Error {}

async function answered(response) {
  let told;
  try {
    told = await response.json();
  } catch {
    throw new Failed(`The answer cannot be read (${response.status}).`);
  }
  if (!response.ok) throw new Failed(told.error || `The server answered ${response.status}.`);
  return told;
}

async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Failed(
      "selfpager view does not answer. The page continues when it does. If it was ended, start it again and " +
        "open the address that it prints.",
    );
  }
  return answered(response);
}

export const agents = () => ask("api/agents");

export const fleet = (from) => ask(`api/fleet?${new URLSearchParams({ from })}`);

export function get(agent, what, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(known).toString();
  return ask(address(agent, what) + (text ? `?${text}` : ""));
}

export function address(agent, what) {
  return `api/${encodeURIComponent(agent)}/${what}`;
}

export function edit(agent, kind, values) {
  return ask(address(agent, "edit"), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ kind, arguments: values }),
  });
}
