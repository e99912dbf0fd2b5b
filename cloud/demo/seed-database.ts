import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { roleNames, scopes } from '../../protocol/model/scopes.ts'
import { localDay } from '../platform/calendar/zone.ts'
import type { Deal } from '../commerce/deals/engine/deal.ts'
import { rebuildSales } from '../commerce/analytics/rebuild.ts'
import { issueApiKey } from '../platform/credentials/api-keys.ts'
import { grantRole } from '../platform/credentials/roles.ts'
import { demoPeople, subjectOf } from '../platform/identity/demo-sign-in.ts'
import type { CloudDatabase, Tx } from '../platform/store/database.ts'
import { demoProducts } from './assortment.ts'
import { demoChance } from './chance.ts'
import { insertDeals } from './deals.ts'
import {
  demoHubs,
  insertHub,
  insertLayout,
  insertMany,
  type SeededFacing,
  type SeededHub,
} from './hub-data.ts'
import { insertPastOrders } from './past-orders.ts'
import { noPictures, type ProductPictures } from './pictures.ts'

/** The data that the demo needs; keys and passwords are shown only here. */
export interface DemoData {
  owner: { api_key: string }
  other_owner: { api_key: string; hub_id: number }
  diag: { api_key: string }
  hubs: { hub_id: number; name: string }[]
  /** The password of the simulated hub. */
  mqtt_password: string
  mqtt_passwords: Record<number, string>
  /** The initial contents of the simulated hub's shelves. */
  shelves: SeededFacing[]
}

const SEED = 20_240_229
const YEARS = 2

/**
 * Fills an empty, migrated database with the demo's data, in one transaction. `hardware`: the hubs' hardware
 * description, if known; their layout in the cloud is made from it. `years`: how long the hubs have sold.
 */
export function seedDemo(
  db: CloudDatabase,
  runtime: Runtime,
  hardware?: Pick<HardwareDescription, 'controllers' | 'fridgeDoors'>,
  pictures: ProductPictures = noPictures,
  years = YEARS,
): Promise<DemoData> {
  return db.transact(async (tx) => {
    const known = await tx.q.selectFrom('owners').select('id').executeTakeFirst()
    if (known) throw new Error('the database has data already')
    const chance = demoChance(SEED)
    await pictures.keep(tx)
    await insertMany(tx, 'owners', [
      { id: 1, name: 'Springfield Vending' },
      { id: 2, name: 'Harbour Hotels' },
    ])
    await insertCategories(tx)
    const hubs: SeededHub[] = []
    let firstProductId = 1
    for (const hub of demoHubs) {
      const mqttPassword = randomHex(runtime.random, 16)
      hubs.push(await insertHub(tx, runtime, hub, { firstProductId, mqttPassword, chance, pictures }))
      await insertLayout(tx, hub.id, hardware)
      firstProductId += hub.products
    }
    await insertPast(tx, runtime, hubs, years)
    for (const { hub } of hubs) await rebuildSales(tx, hub.id)
    return describe(tx, runtime, hubs)
  })
}

async function insertCategories(tx: Tx): Promise<void> {
  const parents = [...new Set(demoProducts.map(({ category }) => category))]
  const children = new Map(demoProducts.map(({ subcategory, category }) => [subcategory, category]))
  await insertMany(tx, 'categories', [
    ...parents.map((name, index) => ({ id: index + 1, name, parent_id: null })),
    ...[...children].map(([name, parent], index) => ({
      id: parents.length + index + 1,
      name,
      parent_id: parents.indexOf(parent) + 1,
    })),
  ])
}

/** Hub 2 has never been connected: it has no past. */
async function insertPast(
  tx: Tx,
  runtime: Runtime,
  hubs: readonly SeededHub[],
  years: number,
): Promise<void> {
  const now = runtime.clock.now()
  const chance = demoChance(SEED + 1)
  const users = Array.from({ length: 420 }, (_, index) => index + 1)
  const days = Math.ceil(years * 365.25)
  const since = now - days * 86_400_000
  await insertMany(
    tx,
    'users',
    users.map((id) => ({
      id,
      identity: `demo-customer-${id}`,
      is_anonymous: 0,
      email: `customer${id}@example.org`,
      created_at: since,
      updated_at: since,
    })),
  )
  const ids = { order: 1, item: 1 }
  const common = { runtime, chance, now, days, ids }
  for (const [seeded, perDay, own] of [
    [hubs[0]!, 14, users.slice(0, 300)],
    [hubs[2]!, 6, users.slice(300)],
  ] as const) {
    const deals = await insertDeals(tx, runtime, seeded)
    await insertPastOrders(tx, {
      ...common,
      seeded,
      perDay,
      users: own,
      deals: deals.filter(isOver(now, seeded)),
    })
  }
}

/** Only deals that are over have been used. */
const isOver =
  (now: number, { hub }: SeededHub) =>
  ({ end }: Deal): boolean =>
    end !== null && end < localDay(hub.timezone, now)

async function describe(tx: Tx, runtime: Runtime, hubs: readonly SeededHub[]): Promise<DemoData> {
  const documented = scopes.filter((scope) => !scope.startsWith('diag:'))
  const issue = async (name: string, ownerId: number, granted: typeof documented) => ({
    api_key: (
      await issueApiKey(tx.q, runtime, { name, ownerId, scopes: granted, hubs: '*', expiresAt: null })
    ).key,
  })
  const [simulated, , other] = hubs
  const own = hubs.filter(({ hub }) => hub.id !== other!.hub.id).map(({ hub }) => hub.id)
  for (const role of roleNames) {
    const person = demoPeople.find((name) => name.toLowerCase() === role)!
    await grantRole(tx.q, runtime, { identity: subjectOf(person), role, hubs: own })
  }
  return {
    owner: await issue('demo owner', 1, documented),
    other_owner: { ...(await issue('demo other owner', 2, documented)), hub_id: other!.hub.id },
    diag: await issue('demo diagnostics', 1, ['diag:read', 'diag:write']),
    hubs: hubs.map(({ hub }) => ({ hub_id: hub.id, name: hub.name })),
    mqtt_password: simulated!.mqttPassword,
    mqtt_passwords: Object.fromEntries(hubs.map(({ hub, mqttPassword }) => [hub.id, mqttPassword])),
    shelves: simulated!.facings,
  }
}
