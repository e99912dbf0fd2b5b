import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { randomHex } from '../../protocol/model/ids.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { deeds, isDeed, type Deed } from './lines-to-try.ts'
import { writeJson } from './places.ts'
import { z } from 'zod'
import { createClient, unwrap, type Client } from '../../protocol/client/client.ts'

/** What the deeds know of a running demo, of `data/demo.json`. */
const RunningDemo = z.object({
  base_url: z.string(),
  simulator_url: z.string(),
  hubs: z.array(z.object({ hub_id: z.int() })).min(1),
})
type RunningDemo = z.infer<typeof RunningDemo>

/** What a deed leaves for the next one. */
const Begun = z.object({ token: z.string(), userId: z.int(), orderId: z.int() })
type Begun = z.infer<typeof Begun>

interface TryOut {
  demo: RunningDemo
  /** The guest's name at the demo's issuer. */
  subject: string
  begun: Begun | undefined
  say: (line: string) => void
}

/** Somebody did the deeds out of order, or the demo is not there. */
class TryError extends Error {}

const UNITS = 2

/** Does one deed; resolves with what the next one goes on with, when what it says has happened. */
async function tryOut(deed: Deed, given: TryOut): Promise<Begun> {
  if (deed === 'cart') return fillCart(given)
  if (!given.begun) throw new TryError('there is no cart yet: npm run try -- cart')
  await (deed === 'pay' ? pay : collect)(given, given.begun)
  return given.begun
}

const customerOf = ({ demo: { base_url: baseUrl } }: TryOut, token: string): Client =>
  createClient({ baseUrl, token })

async function fillCart(given: TryOut): Promise<Begun> {
  const { demo, subject, say } = given
  const hub_id = demo.hubs[0]!.hub_id
  const identity = await post(`${demo.base_url}/demo/identity/token`, { sub: subject, anonymous: true })
  const { access_token: token } = Identity.parse(identity)
  const customer = customerOf(given, token)
  const { user_id } = unwrap(await customer.call('POST /users/user/bootstrap/guest'))
  const query = { hub_id }
  const cart = unwrap(await customer.call('POST /users/{user_id}/orders', { params: { user_id }, query }))
  for await (const product of customer.items('GET /hubs/{hub_id}/products', { params: query })) {
    if (product.quantity < UNITS) continue
    const params = { user_id, order_id: cart.order_id }
    const order = unwrap(
      await customer.call('PUT /users/{user_id}/orders/{order_id}/order_item', {
        params,
        query,
        body: { product_id: product.id, quantity: UNITS },
      }),
    )
    say(
      `order ${cart.order_id}: ${UNITS} × ${product.name}, ${(order.total / 100).toFixed(2)} ${order.currency}`,
    )
    return { token, userId: user_id, orderId: cart.order_id }
  }
  throw new TryError(`hub ${hub_id} has no product of which ${UNITS} are left: npm start -- --fresh`)
}

async function pay(given: TryOut, begun: Begun): Promise<void> {
  const customer = customerOf(given, begun.token)
  const body = { order_id: begun.orderId, payment_method_id: 'pm_card_visa' }
  const { payment_status } = unwrap(await customer.call('POST /users/payments/pay', { body }))
  given.say(`payment: ${payment_status}`)
  await until(given, begun, 'READY')
}

async function collect(given: TryOut, begun: Begun): Promise<void> {
  const { demo, say } = given
  const customer = customerOf(given, begun.token)
  const hub_id = demo.hubs[0]!.hub_id
  const opened = unwrap(
    await customer.call('POST /users/{user_id}/orders/{order_id}/open-delivery', {
      params: { user_id: begun.userId, order_id: begun.orderId },
      query: { hub_id },
    }),
  )
  for (const { bin_number, success, error } of opened.results) {
    say(success ? `bin ${bin_number} is open` : `bin ${bin_number}: ${error ?? 'it stays closed'}`)
    if (success) await takeItems(demo, hub_id, bin_number)
  }
  await until(given, begun, 'COMPLETED')
}

/** The hands of the customer, which the simulator has. */
async function takeItems({ simulator_url }: RunningDemo, hubId: number, bin: number): Promise<void> {
  await post(`${simulator_url}/api/hubs/${hubId}/act`, { action: 'take_items', target: `bin-${bin}` })
}

const Identity = z.object({ access_token: z.string() })

/** What is of the demo alone, and so not of the client. */
async function post(url: string, body: object): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new TryError(`${url}: ${await answer.text()}`)
  return answer.json()
}

/** Follows the order, and says each of its states once. */
async function until(given: TryOut, { userId, orderId, token }: Begun, wanted: string): Promise<void> {
  const customer = customerOf(given, token)
  let last: string | undefined
  for await (const { processing_status_name: name, bins } of customer.followOrder({ userId, orderId })) {
    if (name !== last)
      given.say(`order ${orderId}: ${name}${bins.length > 0 ? `, bin ${bins.join(', ')}` : ''}`)
    last = name
    if (name === wanted) return
  }
  throw new TryError(`order ${orderId} has ended otherwise: ${last}`)
}

const usage = `Usage: npm run try -- ${Object.keys(deeds).join('|')} [--data DIR]

Takes one order of a running demo (npm start) from a guest's cart to COMPLETED, in three steps:

${Object.entries(deeds)
  .map(([deed, words]) => `  ${deed.padEnd(8)} ${words}`)
  .join('\n')}

  --data DIR   the demo's DATA_DIR; by default data
`

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

async function main(deed: Deed, dataDir: string): Promise<void> {
  const [demoFile, begunFile] = [join(dataDir, 'demo.json'), join(dataDir, 'try.json')]
  if (!existsSync(demoFile))
    throw new TryError(`No demo runs with its data in ${dataDir}. Start one with: npm start`)
  const begun = await tryOut(deed, {
    demo: RunningDemo.parse(readJson(demoFile)),
    subject: `guest-${randomHex(systemRuntime().random, 4)}`,
    begun: existsSync(begunFile) ? Begun.parse(readJson(begunFile)) : undefined,
    say: (line) => void process.stdout.write(`${line}\n`),
  })
  writeJson(begunFile, begun)
}

try {
  const { values, positionals } = parseArgs({
    options: { data: { type: 'string', default: 'data' }, help: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [word = '', ...others] = positionals
  if (values.help) process.stdout.write(usage)
  else if (!isDeed(word) || others.length > 0) throw new TryError(`one of: ${Object.keys(deeds).join(', ')}`)
  else await main(word, resolve(values.data))
} catch (error) {
  process.stderr.write(`larder try: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
