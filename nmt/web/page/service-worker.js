// Keeps the files of this page, FILES with their SHA-256, so that it works offline: all of one export, or none.
const CACHE = `${registration.scope} ${VERSION}`;

async function intact(name, options) {
  const response = await fetch(name, options);
  const content = await response.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  const written = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (!response.ok || written !== FILES[name]) throw new Error(`${name} is damaged`);
  return new Response(content, { headers: response.headers }); // one that was redirected cannot answer a navigation
}

async function keep() {
  const cache = await caches.open(CACHE);
  for (const name of Object.keys(FILES)) {
    await cache.put(name, await intact(name).catch(() => intact(name, { cache: "reload" })));
  }
}

async function forgetOthers() {
  for (const name of await caches.keys()) {
    if (name.startsWith(`${registration.scope} `) && name !== CACHE) await caches.delete(name);
  }
}

async function kept(name, request) {
  const cache = await caches.open(CACHE);
  return (await cache.match(name)) ?? fetch(request);
}

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("activate", (event) => event.waitUntil(forgetOthers()));
addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  const name = (address.origin + address.pathname).slice(registration.scope.length) || "index.html";
  if (address.href.startsWith(registration.scope) && name in FILES) event.respondWith(kept(name, event.request));
});
