// What service-worker.js keeps of the page at an address, and what worker.js answers to each of the texts in JSON on
// standard input, for tests/web/test_page.py.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const scope = process.argv[2];
const texts = JSON.parse(readFileSync(0, "utf8"));
const { fetch } = globalThis;
const [kept, handlers] = [new Map(), {}];
const cache = { put: async (name, response) => kept.set(name, response), match: async (name) => kept.get(name) };
const answers = [];
Object.assign(globalThis, {
  registration: { scope },
  caches: { open: async () => cache },
  fetch: (name, options) => fetch(new URL(name, scope), options),
  addEventListener: (name, handler) => (handlers[name] = handler),
  onmessage: null,
  postMessage: (answer) => answers.push(answer),
});

let pending;
runInThisContext(readFileSync("service-worker.js", "utf8"));
handlers.install({ waitUntil: (promise) => (pending = promise) });
await pending;
handlers.fetch({ request: { url: scope }, respondWith: (promise) => (pending = promise) });
const response = await pending;
const { redirected, headers } = response;
const page = { redirected, type: headers.get("content-type"), text: await response.text() };

await import("./worker.js");
for (const [id, text] of texts.entries()) {
  globalThis.onmessage({ data: { id, text } });
  while (!answers.some((answer) => answer.id === id)) await new Promise((resolve) => setTimeout(resolve, 10));
}
process.stdout.write(JSON.stringify({ page, names: [...kept.keys()], answers }));
