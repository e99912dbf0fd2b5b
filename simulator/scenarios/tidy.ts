import { pageRequest } from '../../protocol/model/hub-commands.ts'
import { holdsWithin } from '../../protocol/model/runtime.ts'
import { createClient } from '../../protocol/client/client.ts'
import type { HubState } from '../hub-state.ts'
import { type Bench, StepError } from './bench.ts'
import type { Customers } from './customers.ts'
import { differenceOf } from './partial.ts'

/** The problems in `GET /api/state` of the hub. */
interface HubPage {
  held: { orders: boolean; bins: number[] }
  health: {
    accepting_orders: boolean
    bins: { bin_number: number; enabled: boolean; status: string }[]
    fridges: { fridge_number: number; enabled: boolean; status: string; shutoff: boolean }[]
  }
  orders: { phase: string }[]
  stock: {
    location: { cabinet: number; shelf: number; row: number }
    quantity: number
    blocked: string | null
  }[]
  unknown_operations: { operation_id: string }[]
  foreign_controllers: string[]
  links: { controller: string; up: boolean }[]
}

const TIDY_MS = 120_000
/** A row with fewer units is filled. */
const FEW_UNITS = 4

/**
 * Prepares the hub before a scenario, as people would: clears faults, closes doors, empties bins, takes boards over,
 * fills and counts rows, settles unknown operations. Throws `StepError` with the problems that remain.
 */
export async function tidy(bench: Bench, customers: Customers): Promise<void> {
  const { simulator, hubId, clock } = bench
  const ofHub = `/api/hubs/${hubId}`
  await simulator.ask('DELETE', `${ofHub}/faults`)
  await simulator.ask('POST', `${ofHub}/power`, { state: 'on' })
  await closeDoors(bench)
  if (!bench.hasDemo) return
  const demo = bench.demo()
  await demo.network('back')
  for (const name of ['cloud', 'edge'] as const) await demo.program(name, 'start')
  let problem: string | undefined
  const isTidy = async (): Promise<boolean> => {
    try {
      problem = (await tidyHub(bench)) ?? (await tidyCustomers(customers)) ?? (await cloudProblem(bench))
    } catch (error) {
      problem = (error as Error).message
    }
    return problem === undefined
  }
  if (!(await holdsWithin(clock, TIDY_MS, isTidy)))
    throw new StepError(`the hub is not put to rights: ${problem}`)
}

async function closeDoors(bench: Bench): Promise<void> {
  const { simulator, hubId } = bench
  for (const { door, open } of (await bench.state()).doors)
    if (open) await simulator.ask('POST', `/api/hubs/${hubId}/act`, { action: 'close_door', target: door })
}

async function tidyCustomers(customers: Customers): Promise<string | undefined> {
  try {
    await customers.leave()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** One round; returns a remaining problem. */
async function tidyHub(bench: Bench): Promise<string | undefined> {
  const hub = bench.hub()
  const page = await hub.ask<HubPage>('GET', '/state')
  const attempt = (path: string, body: object = {}): Promise<unknown> =>
    // The next round retries failed requests.
    hub.ask('POST', path, body).catch(() => undefined)
  for (const board of page.foreign_controllers) await attempt(`/controllers/${board}/take-over`)
  if (page.held.orders) await attempt('/hold/orders', { held: false })
  for (const bin of page.held.bins) await attempt(`/bins/${bin}/hold`, { held: false })
  for (const { fridge_number, shutoff } of page.health.fridges)
    if (shutoff) await attempt(`/fridges/${fridge_number}/confirm`)
  const silent = page.links.find(({ up }) => !up)
  if (silent) return `controller ${silent.controller} does not speak with the hub`
  if (page.orders.some(({ phase }) => phase === 'preparing')) return 'the hub is at work on an order'
  const state = await bench.state()
  await settle(bench, page, attempt)
  await emptyBins(bench, state, page, attempt)
  await fillRows(bench, state, page, attempt)
  const wrongBin = page.health.bins.find(({ status }) => status !== 'healthy')
  if (wrongBin) return `bin ${wrongBin.bin_number} is ${wrongBin.status}`
  const wrongFridge = page.health.fridges.find(({ status }) => status !== 'healthy')
  if (wrongFridge) return `fridge ${wrongFridge.fridge_number} is ${wrongFridge.status}`
  const wrongRow = page.stock.find(({ blocked }) => blocked !== null)
  if (wrongRow) return `a row is blocked (${wrongRow.blocked})`
  if (page.unknown_operations.length > 0) return 'the outcome of an operation is unknown'
  const full = state.bins.find(({ units, door }) => units > 0 || door !== 'closed')
  return full && `${full.bin} is not empty and closed`
}

type Attempt = (path: string, body?: object) => Promise<unknown>

/** Settles operations that are unknown to the hub by the chronicle of the simulator. */
async function settle(
  bench: Bench,
  { unknown_operations: unknown }: HubPage,
  attempt: Attempt,
): Promise<void> {
  if (unknown.length === 0) return
  const acts = await bench.acts(0)
  for (const { operation_id } of unknown) {
    const act = acts.find((one) => one.operation_id === operation_id)
    const happened = act !== undefined && (act.action !== 'dispense' || Number(act.detail['fallen']) > 0)
    await attempt(`/operations/${operation_id}/settle`, { happened })
  }
}

/** Empties bins with left goods, and moves faulty bins: a successful motion ends a fault. */
async function emptyBins(
  bench: Bench,
  state: HubState,
  { health }: HubPage,
  attempt: Attempt,
): Promise<void> {
  const command = (name: 'open_bin' | 'close_bin' | 'lower_bin', bin: number): Promise<unknown> =>
    attempt(`/${pageRequest({ name, bin }).path}`)
  for (const { bin, units, door } of state.bins) {
    const number = Number(bin.slice('bin-'.length))
    const isFine = health.bins.some((one) => one.bin_number === number && one.status === 'healthy')
    if (isFine && units === 0 && door === 'closed') continue
    await command('open_bin', number)
    if (units > 0)
      await bench.simulator
        .ask('POST', `/api/hubs/${bench.hubId}/act`, { action: 'take_items', target: bin })
        .catch(() => undefined)
    await command('close_bin', number)
    await command('lower_bin', number)
  }
}

async function fillRows(bench: Bench, state: HubState, { stock }: HubPage, attempt: Attempt): Promise<void> {
  for (const row of state.rows) {
    const { cabinet, shelf, row: number, units, depth, product_id: product } = row
    if (product === null) continue
    const place = { cabinet, shelf, row: number }
    const known = stock.find(({ location }) => differenceOf(place, location) === undefined)
    const isShort = units < FEW_UNITS
    if (isShort)
      await bench.simulator.ask('POST', `/api/hubs/${bench.hubId}/act`, {
        action: 'restock',
        target: `cabinet-${cabinet}`,
        shelf,
        row: number,
        units: depth - units,
      })
    if (isShort || (known && (known.quantity !== units || known.blocked !== null)))
      await attempt('/stock/count', { location: place, units: isShort ? depth : units })
  }
}

/** Why the cloud does not sell everything; undefined if it does. */
async function cloudProblem(bench: Bench): Promise<string | undefined> {
  const { baseUrl, apiKey } = bench.cloud()
  const client = createClient({ baseUrl, apiKey })
  const query = { hub_id: bench.hubId }
  const health = await client.call('GET /owners/hubs/get_hub_health/', { query })
  if (!health.ok) return `the cloud answers: ${health.error.message}`
  const { online, bins, fridges } = health.data
  if (!online) return 'the hub is offline to the cloud'
  for (const { bin_number: bin, enabled } of bins)
    if (!enabled) await client.call('POST /owners/controls/enable_bin', { query: { bin, hub: bench.hubId } })
  for (const { fridge_number: fridge, enabled } of fridges)
    if (!enabled)
      await client.call('POST /owners/controls/enable_fridge', { query: { fridge, hub: bench.hubId } })
  const bad = bins.find(({ status }) => status !== 'healthy')
  if (bad) return `to the cloud bin ${bad.bin_number} is ${bad.status}`
  const facings = await client.call('GET /owners/hubs/facings', { query })
  if (!facings.ok) return `the cloud answers: ${facings.error.message}`
  const blocked = facings.data.find((one) => one.blocked)
  if (blocked) return `to the cloud row ${blocked.cabinet}/${blocked.shelf}/${blocked.row} is blocked`
  const { status } = await resumed(client, bench.hubId)
  return status === 200 || status === 202 ? undefined : 'the hub takes no orders'
}

async function resumed(client: ReturnType<typeof createClient>, hub: number): Promise<{ status: number }> {
  const hubs = await client.call('GET /owners/hubs', {})
  const own = hubs.ok ? hubs.data.find(({ id }) => id === hub) : undefined
  if (own?.hub_status !== 'paused') return { status: 200 }
  const result = await client.call('POST /owners/controls/resume_orders', { query: { hub } })
  return { status: result.ok ? result.status : result.error.status }
}
