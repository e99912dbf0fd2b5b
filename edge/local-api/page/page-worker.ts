/** The part of a service worker that this file uses: the compiler has only the types of windows. */
interface FetchEvent extends Event {
  request: Request
  respondWith(answer: Promise<Response>): void
}
interface NotificationEvent extends Event {
  notification: { close(): void }
  waitUntil(work: Promise<unknown>): void
}
interface Worker {
  addEventListener(type: 'fetch', listener: (event: FetchEvent) => void): void
  addEventListener(type: 'notificationclick', listener: (event: NotificationEvent) => void): void
  addEventListener(type: 'install' | 'activate', listener: () => void): void
  skipWaiting(): Promise<void>
  clients: {
    claim(): Promise<void>
    matchAll(which: { type: 'window' }): Promise<readonly { focus(): Promise<unknown> }[]>
  }
}
const worker = globalThis as unknown as Worker

/** Milliseconds to wait for the current page before the cached page is shown. */
const PATIENCE_MS = 3000

worker.addEventListener('install', () => void worker.skipWaiting())
worker.addEventListener('activate', () => void worker.clients.claim())
worker.addEventListener('fetch', (event) => {
  const { request } = event
  if (request.method !== 'GET') return
  const { pathname } = new URL(request.url)
  if (request.mode === 'navigate' && pathname === '/') event.respondWith(newest(request))
  // Their names contain a hash of their content.
  else if (/^\/[A-Za-z0-9_-]+\.(?:js|css|svg)$/.test(pathname)) event.respondWith(kept(request))
})

worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(worker.clients.matchAll({ type: 'window' }).then(([page]) => page?.focus()))
})

/** The hub's current page, or the cached one. */
async function newest(request: Request): Promise<Response> {
  const cache = await caches.open('page')
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) })
    if (answer.ok) await cache.put('./', answer.clone())
    return answer
  } catch {
    return (await cache.match('./')) ?? Response.error()
  }
}

async function kept(request: Request): Promise<Response> {
  const cache = await caches.open('page')
  const found = await cache.match(request)
  if (found) return found
  const answer = await fetch(request)
  if (answer.ok) await cache.put(request, answer.clone())
  return answer
}
