import { join } from 'node:path'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { createDeal } from '../../cloud/commerce/deals/write-deals.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import { leaveUnsummed, writeBooks } from './books.ts'
import { writeCarts, writePresence } from './carts.ts'
import { ratios, type Figure, type Section } from './figures.ts'
import { inTurns, type Contestant } from './paired.ts'
import { serveCloud, tokensOf, type ServedCloud } from './served-cloud.ts'
import { testContext } from '../cloud/support/context.ts'

export interface DealsBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Reads of a cart in a round, in each of the hubs. */
  requests: number
  /** Active deals of the hubs. */
  sizes: readonly number[]
}

const PRODUCTS = 5000
const WARM_UP = 1000
/** Each customer may read 360 times a minute. */
const CUSTOMERS = 50

/**
 * Measures a customer's read of a cart of two lines with its deals, in hubs with few, more and many active
 * deals.
 */
export async function benchDeals({ runtime, folder, rounds, requests, sizes }: DealsBench): Promise<Section> {
  const clouds: ServedCloud[] = []
  const contestants: Contestant[] = []
  try {
    for (const size of sizes) {
      const { cloud, carts, tokens } = await openHub(runtime, folder, size)
      clouds.push(cloud)
      let looks = 0
      contestants.push({
        name: `${size} deals`,
        port: cloud.port,
        pid: cloud.pid,
        requests: (count) =>
          Array.from({ length: count }, () => {
            const mine = looks++ % CUSTOMERS
            const { user, order } = carts[mine]!
            return `GET /users/${user}/orders/${order}?hub_id=1 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${tokens[mine]!}\r\n\r\n`
          }),
      })
    }
    const measured = await inTurns(contestants, { rounds, requests, warmUp: WARM_UP, connections: 1 })
    const named = sizes.map((size) => size.toLocaleString('en'))
    const figures: Figure[] = measured.flatMap(({ processor, p50 }, index) => [
      {
        name: `${named[index]} deals: processor`,
        values: processor,
        unit: 'ms',
        growth: { of: 'deals', at: sizes[index]!, line: 'processor' },
      },
      { name: `${named[index]} deals: p50`, values: p50, unit: 'ms' },
    ])
    figures.push({
      name: `processor at ${named.at(-1)} deals to ${named[0]}`,
      values: ratios(measured.at(-1)!.processor, measured[0]!.processor),
      unit: 'times',
      aim: 'at most 2',
    })
    return {
      title: `a look at a cart, ${PRODUCTS.toLocaleString('en')} products, each deal on one of them (SQLite, ${rounds} rounds of ${requests})`,
      figures,
      notes: ['HTTP over loopback from a process of its own, one at a time; the whole request'],
    }
  } finally {
    for (const cloud of clouds) await cloud.stop()
  }
}

async function openHub(runtime: Runtime, folder: string, deals: number) {
  const now = runtime.clock.now()
  const file = join(folder, `${deals}.sqlite`)
  const db = await writeBooks({ file, orders: 1000, products: PRODUCTS, now })
  await leaveUnsummed(db)
  await writePresence(db, 1, now)
  const hub = { id: 1, firstProduct: 1, products: PRODUCTS }
  const carts = await writeCarts(db, { count: CUSTOMERS, hubs: [hub], now })
  for (let n = 0; n < deals; n += 1) await addDeal(db, runtime, n)
  await db.close()
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, `cloud-${deals}`),
    database: file,
  })
  return { cloud, carts, tokens: await tokensOf(cloud, CUSTOMERS) }
}

/** Ten percent off one product; the carts contain some of the first ones, equal in every hub. */
async function addDeal(db: CloudDatabase, runtime: Runtime, n: number): Promise<void> {
  const context = testContext(db, runtime)
  const part = {
    type: 'PERCENT_OFF' as const,
    quantity: null,
    product_id: 1 + ((n * 7) % PRODUCTS),
    discount_pct_or_price: 10,
  }
  const trigger = {
    type: 'ALWAYS' as const,
    quantity: null,
    category: null,
    category_id: null,
    product_id: null,
  }
  await createDeal(
    context,
    { keep: () => Promise.resolve() },
    {
      fields: {
        hub_id: 1,
        name: `Deal ${n}`,
        description: null,
        display_text: null,
        is_deal_active: true,
        start: null,
        end: null,
        priority: 0,
      },
      triggers: [{ part: trigger, loc: [] }],
      rewards: [{ part, loc: [] }],
      constraints: [],
      constraintsLoc: [],
      imageKey: null,
      actor: 'bench',
    },
  )
}
