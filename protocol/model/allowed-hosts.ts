import { isLoopback } from './exposure.ts'

/**
 * Whether a request's `Host` is one by which a service of the local network is called: an address, `localhost`, or one of
 * `names`. A site elsewhere can have its own name lead to this machine, and its pages then share an origin with it (DNS
 * rebinding); but the browser says that name.
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

/** IPv6 in brackets, or IPv4 as the parser of addresses writes it. */
const ADDRESS = /^(\[[\da-f:.]+\]|\d{1,3}(\.\d{1,3}){3})$/

/**
 * Whether `/metrics` may be called by a `Host`, at a listener's address. On a loopback address only this machine calls: a page in
 * its browser must not read the figures by DNS rebinding. Callers of other addresses use names of their own.
 */
export const isMetricsHost = (listensAt: string): ((header: string | undefined) => boolean) =>
  isLoopback(listensAt) ? hostCheck([listensAt]) : () => true
