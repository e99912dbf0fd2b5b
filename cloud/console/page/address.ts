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

/** The page that `go` shows has not drawn its heading yet. */
let isHeadingDue = false

/** Called with each new heading. The heading of a page that `go` shows gets the focus. */
export function headingDrawn(heading: HTMLElement | null): void {
  if (isHeadingDue) heading?.focus({ preventScroll: true })
  isHeadingDue = false
}

/** Shows another page; the keyboard focus goes to its heading. */
export function go(to: string): void {
  if (hrefOf(to) === location.pathname + location.search) return
  history.pushState(null, '', hrefOf(to))
  isHeadingDue = true
  address.value = read()
  scrollTo(0, 0)
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
