// A service worker: after one visit the page is there without a network. Newer files are fetched behind what is shown.
const CACHE = "belljar";
const FILES = "offline.json"; // what is kept at once (build_host.py makes it); others are when they are used

self.addEventListener("install", (event) => event.waitUntil(keepAll().then(() => self.skipWaiting())));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== self.location.origin) return;
  event.respondWith(answer(request));
});

async function keepAll() {
  const cache = await caches.open(CACHE);
  await cache.addAll(["./", FILES, ...await (await fetch(FILES)).json()]);
}

async function answer(request) {
  const cache = await caches.open(CACHE);
  const known = await cache.match(request);
  const fresh = fetch(request).then((response) => {
    if (response.ok) cache.put(request, response.clone());
    return response;
  });
  if (known === undefined) return fresh;
  fresh.catch(() => {}); // offline
  return known;
}
