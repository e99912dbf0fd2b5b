import { signal } from '@preact/signals'
import { address, hubId } from './store.ts'

/** The shown part: the products (with the cart beside them), the cart, one order or its receipt, the list of orders, or the account. */
export type Place =
  { at: 'products' | 'cart' | 'orders' | 'account' } | { at: 'order' | 'receipt'; orderId: number }

function placeNow(): Place {
  if (location.hash === '#orders') return { at: 'orders' }
  if (location.hash === '#account') return { at: 'account' }
  const order = /\/shop\/[^/]+\/orders\/(\d+)/.exec(location.pathname)
  if (order) return { at: location.hash === '#receipt' ? 'receipt' : 'order', orderId: Number(order[1]) }
  return { at: location.hash === '#cart' ? 'cart' : 'products' }
}

export const place = signal<Place>(placeNow())
for (const event of ['popstate', 'hashchange'])
  addEventListener(event, () => {
    place.value = placeNow()
    scrollTo({ top: 0 })
  })

export const shopAddress = (part = ''): string => address(`/shop/${hubId}${part}`)

/** Shows an order, or the products. */
export function show(orderId?: number): void {
  history.pushState(null, '', shopAddress(orderId === undefined ? '' : `/orders/${orderId}`))
  dispatchEvent(new PopStateEvent('popstate'))
}
