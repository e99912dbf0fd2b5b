import { createClient } from '../../protocol/client/client.ts'
import { type HubAlarmCode, kindOfCode } from '../../protocol/model/alarms.ts'
import type { HubState } from '../hub-state.ts'
import type { Act } from '../physics/world-state.ts'
import type { Bench } from './bench.ts'
import type { Answer, Customers } from './customers.ts'
import { differenceOf, show } from './partial.ts'
import type { Condition } from './schema.ts'

/** The observations of a scenario so far. */
export interface Seen {
  bench: Bench
  customers: Customers
  /** The number of the last physical act before the scenario began. */
  startedAfter: number
  /** When the scenario began: alarms that ended before do not count. */
  startedAt: number
  answer: Answer | undefined
}

type Part = keyof Condition
type Judge<K extends Part> = (wanted: NonNullable<Condition[K]>, seen: Seen) => Promise<string | undefined>

/** The checks of a condition's parts. Each returns a sentence about a difference, or undefined. */
const judges: { [K in Part]-?: Judge<K> } = {
  async device({ name, is }, { bench }) {
    const found = deviceOf(await bench.state(), name)
    if (!found) return `there is no ${name} at this hub`
    const difference = differenceOf(is, found)
    return difference && `${name}: ${difference}`
  },
  async motion({ device, action, detail, times }, { bench, startedAfter }) {
    const acts = await bench.acts(startedAfter)
    const found = acts.filter((act) => isAct(act, { device, action, detail }))
    if (times === undefined ? found.length > 0 : found.length === times) return undefined
    const what = [device, action, detail && show(detail)].filter((one) => one !== undefined).join(' ')
    const wanted = times === undefined ? 'at least once' : timesOf(times)
    const should = times === 0 ? 'it should not have' : `it should have ${wanted}`
    const all = acts.map((act) => `${act.device} ${act.action}`).join(', ')
    return `${what} happened ${timesOf(found.length)}, ${should}; what moved: ${show(all || 'nothing')}`
  },
  async order({ customer, status, payment_status, dropped, refunded, bins }, { customers }) {
    const order = await customers.order(customer)
    const sum = (count: (item: (typeof order.items)[number]) => number): number =>
      order.items.reduce((total, item) => total + count(item), 0)
    const is = {
      status: order.processing_status_name,
      payment_status: order.payment_status,
      dropped: sum(({ qty_dropped }) => qty_dropped),
      refunded: sum(({ refunded_quantity }) => refunded_quantity),
      bins: order.bins.length,
    }
    const statuses = status === undefined ? undefined : [status].flat()
    const isFine =
      (statuses === undefined || statuses.includes(is.status)) &&
      (payment_status === undefined || payment_status === is.payment_status) &&
      (dropped === undefined || dropped === is.dropped) &&
      (refunded === undefined || refunded === is.refunded) &&
      (bins === undefined || bins === is.bins)
    if (isFine) return undefined
    const wanted = { status: statuses?.join(' or '), payment_status, dropped, refunded, bins }
    return `${customer}'s order is ${wordsOf(is)}; it should be ${wordsOf(wanted)}`
  },
  async alarm({ kind, subject, state, at }, { bench, startedAt }) {
    const all = at === 'cloud' ? await cloudAlarms(bench, startedAt) : await hubAlarms(bench)
    const found = all.filter((one) => one.kind === kind && (subject === undefined || one.subject === subject))
    const isFine =
      state === 'none' ? !found.some((one) => one.state === 'open') : found.some((one) => one.state === state)
    if (isFine) return undefined
    const what = `${kind}${subject === undefined ? '' : ` of ${subject}`}`
    const listed = all.map((one) => `${one.kind} of ${one.subject ?? 'the hub'} (${one.state})`)
    return `${state === 'none' ? `an alarm ${what} is open` : `no alarm ${what} is ${state}`}; alarms: ${listed.join(', ') || 'none'}`
  },
  async health(wanted, { bench }) {
    const health = await owner(bench, 'GET /owners/hubs/get_hub_health/')
    const difference = differenceOf(wanted, health)
    return difference && `the hub's health: ${difference}`
  },
  async hub(wanted, { bench }) {
    const difference = differenceOf(wanted, await bench.hub().ask('GET', '/state'))
    return difference && `the hub's page: ${difference}`
  },
  async facing({ row, is }, { bench }) {
    const facings = (await owner(bench, 'GET /owners/hubs/facings')) as Record<string, unknown>[]
    const name = `row ${row.cabinet}/${row.shelf}/${row.row}`
    const found = facings.find((one) => differenceOf(row, one) === undefined)
    if (!found) return `the cloud knows no ${name}`
    const difference = differenceOf(is, found)
    return difference && `${name} in the cloud: ${difference}`
  },
  answer(wanted, { answer }) {
    if (!answer) return Promise.resolve('nothing has been called yet')
    const difference = differenceOf(wanted, answer)
    return Promise.resolve(difference && `the last answer: ${difference}`)
  },
}

/**
 * The difference between a condition and the present state; undefined if it holds. A state that cannot be read now
 * counts as a difference.
 */
export async function judge(condition: Condition, seen: Seen): Promise<string | undefined> {
  for (const [part, wanted] of Object.entries(condition)) {
    if (wanted === undefined) continue
    try {
      const problem = await (judges[part as Part] as Judge<never>)(wanted as never, seen)
      if (problem !== undefined) return problem
    } catch (error) {
      return (error as Error).message
    }
  }
  return undefined
}

function deviceOf(state: HubState, name: string): object | undefined {
  const [, cabinet, shelf, row] = (/^(\d+)\/(\d+)\/(\d+)$/.exec(name) ?? []).map(Number)
  if (cabinet !== undefined)
    return state.rows.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)
  return (
    state.bins.find(({ bin }) => bin === name) ??
    state.fridges.find(({ fridge }) => fridge === name) ??
    state.doors.find(({ door }) => door === name) ??
    state.controllers.find(({ controller }) => controller === name)
  )
}

const isAct = (
  act: Act,
  { device, action, detail }: Pick<NonNullable<Condition['motion']>, 'device' | 'action' | 'detail'>,
): boolean =>
  (device === undefined || act.device === device) &&
  (action === undefined || act.action === action) &&
  (detail === undefined || differenceOf(detail, act.detail) === undefined)

const timesOf = (count: number): string =>
  count === 0 ? 'not at all' : count === 1 ? 'once' : `${count} times`

const wordsOf = (values: Record<string, string | number | undefined>): string =>
  Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (name === 'status' ? String(value) : `${name.replaceAll('_', ' ')} ${value}`))
    .join(', ')

interface SeenAlarm {
  kind: string
  subject: string | null
  state: 'open' | 'cleared'
}

async function cloudAlarms(bench: Bench, since: number): Promise<SeenAlarm[]> {
  const { baseUrl, apiKey } = bench.cloud()
  const query = { hub_id: bench.hubId, state: 'all' as const, limit: 100 }
  const result = await createClient({ baseUrl, apiKey }).call('GET /owners/alarms', { query })
  if (!result.ok) throw new Error(`the cloud's alarms cannot be read: ${result.error.message}`)
  return result.data.data
    .filter(({ cleared_at }) => cleared_at === null || Date.parse(cleared_at) >= since)
    .map(({ kind, subject, cleared_at }) => ({
      kind,
      subject,
      state: cleared_at === null ? ('open' as const) : ('cleared' as const),
    }))
}

async function hubAlarms(bench: Bench): Promise<SeenAlarm[]> {
  const { alarms } = await bench.hub().ask<{ alarms: { code: string; subject: string }[] }>('GET', '/state')
  return alarms.map(({ code, subject }) => ({
    kind: kindOfCode(code as HubAlarmCode),
    subject,
    state: 'open',
  }))
}

async function owner(
  bench: Bench,
  endpoint: 'GET /owners/hubs/get_hub_health/' | 'GET /owners/hubs/facings',
): Promise<unknown> {
  const { baseUrl, apiKey } = bench.cloud()
  const result = await createClient({ baseUrl, apiKey }).call(endpoint, { query: { hub_id: bench.hubId } })
  if (!result.ok) throw new Error(`the cloud answers: ${result.error.message}`)
  return result.data
}
