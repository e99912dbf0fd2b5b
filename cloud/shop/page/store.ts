import { batch, computed, signal } from '@preact/signals'
import { createClient, LarderError, type Failure, type Result } from '../../../protocol/client/client.ts'
import { surroundings } from '../../../protocol/client/system.ts'
import type { PaymentMethod } from '../../../protocol/contract/consumer-payments.ts'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { WalletTransaction } from '../../../protocol/contract/consumer-wallet.ts'
import type { Product, Storefront } from '../../../protocol/contract/consumer-products.ts'
import { callProgram } from '../../../protocol/ui/call-program.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { filled, words } from './language.ts'
import { readPatiently } from './reading.ts'

/** The session of this browser, as the service reports it. */
interface Session {
  kind: 'none' | 'guest' | 'person'
  csrf: string | null
  user_id: number | null
  email: string | null
  can_sign_in: boolean
}

/** The path below which the service is served: `/shop/1` or `/prefix/shop/1`. */
const [, base = '', hubText = ''] = /^(.*)\/shop\/([^/]+)/.exec(location.pathname) ?? []
export const hubId = Number(hubText)
export const address = (path: string): string => `${base}${path}`

export const session = signal<Session | undefined>(undefined)
export const hub = signal<Storefront | undefined>(undefined)
export const products = signal<readonly Product[] | undefined>(undefined)
/** The unpaid order at this hub. */
export const cart = signal<Order | undefined>(undefined)
/** The paid order under way at this hub. */
export const running = signal<Order | undefined>(undefined)
/** The hub does not exist. */
export const isUnknown = signal(false)
/** A call has failed for lack of a connection; the page tries again. */
export const isAway = signal(false)
/** A change of the cart is under way. */
export const isBusy = signal(false)
/** Balance of the wallet, and deposits that have not arrived, in cents. */
export const wallet = signal(0)
export const pending = signal(0)
/** The newest changes of the wallet. */
export const moves = signal<readonly WalletTransaction[]>([])
/** The saved cards. */
export const methods = signal<readonly PaymentMethod[]>([])
export const count = computed(() => (cart.value?.items ?? []).reduce((sum, { qty }) => sum + qty, 0))
export const quantityOf = (productId: number): number =>
  cart.value?.items.find((item) => item.product_id === productId)?.qty ?? 0

export const client = createClient({
  baseUrl: location.origin + base,
  csrf: () => session.value?.csrf ?? '',
  retry: { tries: 3 },
})

/** PREPARING and the states around it: the order needs its customer's attention. */
const isUnderWay = ({ processing_status: status }: Order): boolean => status >= 20 && status < 60
const isUnpaid = ({ processing_status: status }: Order): boolean => status < 20

/** The sentence for a failed call. */
export function sentenceOf({ code, details }: Failure): string {
  const texts = words().errors
  if (code === 'card_declined') {
    const { decline_code: declined } = details ?? {}
    const reasons: Readonly<Record<string, string>> = words().decline
    return filled(words().declined, { reason: reasons[String(declined)] ?? words().decline.generic_decline })
  }
  return code in texts ? texts[code as keyof typeof texts] : texts.other
}

/** The answer of a call; reports a failure, and `more` about it. */
export function checked<T>(result: Result<T>, more = ''): T | undefined {
  isAway.value = !result.ok && result.error.status === 0
  if (result.ok) return result.data
  say(`${sentenceOf(result.error)}${more}`, true)
  return undefined
}

const callSession = (method: string, path = ''): Promise<Result<Session | undefined>> =>
  callProgram(address(`/session${path}`), { method, csrf: session.value?.csrf ?? '' })

/** A person at a shared device must know that a sign-out has failed. */
export async function signOut(): Promise<void> {
  const answer = await callSession('DELETE')
  if (answer.ok) location.reload()
  else say(`${words().sign_out_failed} ${sentenceOf(answer.error)}`, true)
}

export const signInAddress = (): string =>
  address(`/session/sign-in?return_to=${encodeURIComponent(location.pathname.slice(base.length))}`)

/** The number of the customer. The first product in a cart makes a guest, the first deposit of a person a customer. Undefined if the service does not answer. */
export async function customer(): Promise<number | undefined> {
  const known = session.value?.user_id
  if (known) return known
  if (session.value?.kind === 'person') {
    const made = checked(await client.call('POST /users/user/bootstrap'))
    changes += 1
    if (made) session.value = { ...session.value, user_id: made.user_id }
  } else {
    const guest = checked(await callSession('POST', '/guest'))
    changes += 1
    if (guest) session.value = guest
  }
  return session.value?.user_id ?? undefined
}

/** All products of the hub, page by page. */
async function readProducts(): Promise<{ ok: true; data: Product[] } | { ok: false; error: Failure }> {
  const data: Product[] = []
  const all = client.items('GET /hubs/{hub_id}/products', { params: { hub_id: hubId }, query: { size: 100 } })
  try {
    for await (const product of all) data.push(product)
    return { ok: true, data }
  } catch (error) {
    if (error instanceof LarderError) return { ok: false, error: error.failure }
    throw error
  }
}

/** Reads the hub and its products. Returns false without a connection. */
async function readHub(): Promise<boolean> {
  const [front, list] = await Promise.all([
    client.call('GET /hubs/{hub_id}', { params: { hub_id: hubId } }),
    readProducts(),
  ])
  batch(() => {
    if (!front.ok) isUnknown.value = front.error.status === 404 || front.error.status === 422
    else hub.value = front.data
    if (list.ok) products.value = list.data
  })
  return [front, list].every((one) => one.ok || one.error.status === 404 || one.error.status === 422)
}

export async function readShop(): Promise<void> {
  isAway.value = !(await readHub())
}

/** Reads everything that may change without this page: the first view calls it, and then a timer. */
export async function readAll(): Promise<void> {
  const read = await Promise.all([readHub(), readOwn()])
  isAway.value = read.includes(false)
}

/** The number of changes that this page has made. A reading that began before a change is old. */
let changes = 0

/** Reads the session, then the customer's open order at this hub. */
export async function readCustomer(): Promise<void> {
  if (!(await readOwn())) isAway.value = true
}

/** Returns false without a connection. */
async function readOwn(): Promise<boolean> {
  const before = changes
  const answer = await callSession('GET')
  if (!answer.ok || !answer.data) return false
  const found = answer.data
  if (changes !== before) return true
  session.value = found
  if (found.user_id === null) {
    cart.value = running.value = undefined
    return true
  }
  const query = { order_processing_statuses: [0, 10, 20, 30, 40, 50] as const, is_desc: true }
  const params = { user_id: found.user_id }
  const orders = await client.call('GET /users/{user_id}/orders', { params, query: { ...query } as never })
  if (!orders.ok) return orders.error.status !== 0
  const here = orders.data.items.filter((order) => order.hub_id === hubId)
  if (changes === before)
    batch(() => {
      cart.value = here.find(isUnpaid)
      running.value = here.find(isUnderWay)
    })
  if (found.kind === 'person') {
    const [balance, saved] = await Promise.all([
      client.call('GET /users/wallet/balance'),
      client.call('GET /users/payments/methods'),
    ])
    batch(() => {
      if (balance.ok) wallet.value = balance.data.balance_cents
      if (balance.ok) pending.value = balance.data.pending_cents
      if (saved.ok) methods.value = saved.data
    })
  }
  return true
}

/** The cart after a change by this page. */
export function setCart(order: Order | undefined): void {
  changes += 1
  cart.value = order
}

/** A followed order is newer than the last reading. */
export function noteOrder(order: Order): void {
  changes += 1
  const known = running.value?.order_id ?? order.order_id
  if (order.hub_id === hubId && known === order.order_id)
    running.value = isUnderWay(order) ? order : undefined
}

/** Repeats a reading of a view until it succeeds or the view is closed. Returns the failure if it is refused for good. */
export const readForView = (read: () => Promise<void>, closed: AbortSignal): Promise<Failure | undefined> =>
  readPatiently(read, {
    closed,
    report: (error) => void checked({ ok: false, error }),
    readSession: readCustomer,
    sleep: surroundings.sleep,
  })

/** The calls of a change follow each other, so that quick touches count each. */
let turn: Promise<unknown> = Promise.resolve()

/** Changes the quantity of a product in the cart. */
export function change(productId: number, by: number): Promise<void> {
  const next = turn.then(() => changeNow(productId, by))
  turn = next.catch(() => {})
  return next
}

async function changeNow(productId: number, by: number): Promise<void> {
  isBusy.value = true
  try {
    const userId = await customer()
    if (userId === undefined) return
    if (!cart.value) {
      const made = checked(
        await client.call('POST /users/{user_id}/orders', {
          params: { user_id: userId },
          query: { hub_id: hubId },
        }),
      )
      if (!made) return void readShop()
      if (isUnderWay(made)) return void (running.value = made)
      setCart(made)
    }
    const result = await client.call('PUT /users/{user_id}/orders/{order_id}/order_item', {
      params: { user_id: userId, order_id: cart.value!.order_id },
      query: { hub_id: hubId },
      body: { product_id: productId, quantity: Math.max(0, quantityOf(productId) + by) },
    })
    const changed = checked(result)
    if (changed) setCart(changed)
    else await Promise.all([readShop(), readCustomer()])
  } finally {
    isBusy.value = false
  }
}
