import { isLoopback } from './exposure.ts'

/**
 * Whether a request's `Host` names a service of the local network: an address, `localhost`, or one of `names`. Protects
 * against DNS rebinding: a foreign site can point its own name at this machine, but the browser then sends that name as
 * `Host`.
 */
export function hostCheck(names: readonly string[]): (header: string | undefined) => boolean {
  const allowed = new Set(['localhost', ...names.map((name) => name.trim().toLowerCase())])
  return (header) => {
    if (header === undefined) return true
    if (!URL.canParse(`http://${header}`)) return false
    const { hostname } = new URL(`http://${header}`)
    return ADDRESS.test(hostname) || hostname.endsWith('.localhost') || allowed.has(hostname)
  }
}

/** IPv6 in brackets, or IPv4 in the normal form of the URL parser. */
const ADDRESS = /^(\[[\da-f:.]+\]|\d{1,3}(\.\d{1,3}){3})$/

/**
 * Whether a caller with this `Host` may read `/metrics`. On a loopback address only this machine calls, and a page in
 * its browser must not read the metrics by DNS rebinding. Callers of other addresses may use any name.
 */
export const isMetricsHost = (listensAt: string): ((header: string | undefined) => boolean) =>
  isLoopback(listensAt) ? hostCheck([listensAt]) : () => true
