import { signal } from '@preact/signals'
import { base } from './session.ts'

/** The place of the console. */
const root = `${new URL(base).pathname.replace(/\/$/, '')}/console`

/** The address below the console: its path (`/orders/17`) and its query. */
interface Address {
  path: string
  query: URLSearchParams
}

const read = (): Address => ({
  path: location.pathname.slice(root.length).replace(/\/$/, ''),
  query: new URLSearchParams(location.search),
})

export const address = signal(read())
addEventListener('popstate', () => void (address.value = read()))

/** `/orders` → `/console/orders`. */
export const hrefOf = (to: string): string => `${root}${to}`

/** Shows another page; the keyboard focus goes to its heading. */
export function go(to: string): void {
  if (hrefOf(to) === location.pathname + location.search) return
  history.pushState(null, '', hrefOf(to))
  address.value = read()
  scrollTo(0, 0)
  requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true }))
}

/** Changes one field of the query, which a reload and a link keep. An empty value removes it. */
export function setQuery(fields: Readonly<Record<string, string>>): void {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(fields))
    if (value === '') query.delete(name)
    else query.set(name, value)
  const text = query.toString()
  history.replaceState(null, '', `${location.pathname}${text === '' ? '' : `?${text}`}`)
  address.value = read()
}
