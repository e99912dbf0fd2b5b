import workerUrl from './page-worker.ts?worker&url'

/**
 * Keeps the page's own files, so that a reload without network shows it. Browsers allow that on secure pages only: with TLS,
 * or on the machine itself.
 */
export async function keepOffline(): Promise<void> {
  if (!isSecureContext || !('serviceWorker' in navigator)) return
  try {
    await navigator.serviceWorker.register(workerUrl, { scope: './' })
    const files = [
      ...document.querySelectorAll<HTMLScriptElement | HTMLLinkElement>('script[src], link[href]'),
    ]
    const cache = await caches.open('page')
    const wanted = files.map((file) => ('src' in file ? file.src : file.href))
    await cache.addAll(['./', ...wanted])
    // Files of an earlier version of the page are deleted.
    for (const { url } of await cache.keys())
      if (!wanted.includes(url) && new URL(url).pathname !== '/') await cache.delete(url)
  } catch {
    // A browser that forbids it shows the page as long as the network is there.
  }
}
