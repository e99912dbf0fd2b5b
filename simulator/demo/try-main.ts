import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import '../../protocol/closed-output.ts'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { moneyText } from '../../protocol/model/money.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { steps, isStep, type Step } from './lines-to-try.ts'
import { guestWithCart } from './guest.ts'
import { writeJson } from './places.ts'
import { simulatorAt } from '../interface/client.ts'
import { z } from 'zod'
import { createClient, unwrap, type Client } from '../../protocol/client/client.ts'

/** The fields of `data/demo.json` that the steps use. */
const RunningDemo = z.object({
  base_url: z.string(),
  simulator_url: z.string(),
  hubs: z.array(z.object({ hub_id: z.int() })).min(1),
})
type RunningDemo = z.infer<typeof RunningDemo>

/** The result of a step, for the next step. */
const StepResult = z.object({ token: z.string(), userId: z.int(), orderId: z.int() })
type StepResult = z.infer<typeof StepResult>

interface TryOut {
  demo: RunningDemo
  /** The guest's name at the demo's issuer. */
  subject: string
  former: StepResult | undefined
  print: (line: string) => void
}

/** The steps were called in the wrong order, or no demo runs. */
class TryError extends Error {}

const UNITS = 2

/** Runs one step. Resolves with the data for the next step when the printed result has happened. */
async function tryOut(step: Step, given: TryOut): Promise<StepResult> {
  if (step === 'cart') return fillCart(given)
  if (!given.former) throw new TryError('there is no cart yet: npm run try -- cart')
  await (step === 'pay' ? pay : collect)(given, given.former)
  return given.former
}

const customerOf = ({ demo: { base_url: baseUrl } }: TryOut, token: string): Client =>
  createClient({ baseUrl, token })

async function fillCart(given: TryOut): Promise<StepResult> {
  const { demo, subject, print } = given
  const hub_id = demo.hubs[0]!.hub_id
  const { client, token, userId, orderId } = await guestWithCart(demo.base_url, { subject, hubId: hub_id })
  const query = { hub_id }
  for await (const product of client.items('GET /hubs/{hub_id}/products', { params: query })) {
    if (product.quantity < UNITS) continue
    const params = { user_id: userId, order_id: orderId }
    const order = unwrap(
      await client.call('PUT /users/{user_id}/orders/{order_id}/order_item', {
        params,
        query,
        body: { product_id: product.id, quantity: UNITS },
      }),
    )
    print(`order ${orderId}: ${UNITS} × ${product.name}, ${moneyText(order.total, order.currency)}`)
    return { token, userId, orderId }
  }
  throw new TryError(`hub ${hub_id} has no product with ${UNITS} units left: npm start -- --fresh`)
}

async function pay(given: TryOut, former: StepResult): Promise<void> {
  const customer = customerOf(given, former.token)
  const body = { order_id: former.orderId, payment_method_id: 'pm_card_visa' }
  const { payment_status } = unwrap(await customer.call('POST /users/payments/pay', { body }))
  given.print(`payment: ${payment_status}`)
  await until(given, former, 'READY')
}

async function collect(given: TryOut, former: StepResult): Promise<void> {
  const { demo, print } = given
  const customer = customerOf(given, former.token)
  const hub_id = demo.hubs[0]!.hub_id
  const opened = unwrap(
    await customer.call('POST /users/{user_id}/orders/{order_id}/open-delivery', {
      params: { user_id: former.userId, order_id: former.orderId },
      query: { hub_id },
    }),
  )
  for (const { bin_number, success, error } of opened.results) {
    print(success ? `bin ${bin_number} is open` : `bin ${bin_number}: ${error ?? 'it stays closed'}`)
    if (success) await takeItems(demo, hub_id, bin_number)
  }
  await until(given, former, 'COMPLETED')
}

/** The simulator acts as the customer's hands. */
const takeItems = ({ simulator_url }: RunningDemo, hubId: number, bin: number): Promise<unknown> =>
  simulatorAt(simulator_url).ask('POST', `/api/hubs/${hubId}/act`, {
    action: 'take_items',
    target: `bin-${bin}`,
  })

/** Follows the order, and says each of its states once. */
async function until(given: TryOut, { userId, orderId, token }: StepResult, wanted: string): Promise<void> {
  const customer = customerOf(given, token)
  let last: string | undefined
  for await (const { processing_status_name: name, bins } of customer.followOrder({ userId, orderId })) {
    if (name !== last)
      given.print(`order ${orderId}: ${name}${bins.length > 0 ? `, bin ${bins.join(', ')}` : ''}`)
    last = name
    if (name === wanted) return
  }
  throw new TryError(`order ${orderId} has ended otherwise: ${last}`)
}

const usage = `Usage: npm run try -- ${Object.keys(steps).join('|')} [--data DIR]

Takes one order of a running demo (npm start) from a guest's cart to COMPLETED, in three steps:

${Object.entries(steps)
  .map(([step, words]) => `  ${step.padEnd(8)} ${words}`)
  .join('\n')}

  --data DIR   the demo's DATA_DIR; by default data
`

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

async function main(step: Step, dataDir: string): Promise<void> {
  const [demoFile, stateFile] = [join(dataDir, 'demo.json'), join(dataDir, 'try.json')]
  if (!existsSync(demoFile))
    throw new TryError(`No demo runs with its data in ${dataDir}. Start one with: npm start`)
  const former = await tryOut(step, {
    demo: RunningDemo.parse(readJson(demoFile)),
    subject: `guest-${randomHex(systemRuntime().random, 4)}`,
    former: existsSync(stateFile) ? StepResult.parse(readJson(stateFile)) : undefined,
    print: (line) => void process.stdout.write(`${line}\n`),
  })
  writeJson(stateFile, former)
}

try {
  const { values, positionals } = parseArgs({
    options: { data: { type: 'string', default: 'data' }, help: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [word = '', ...others] = positionals
  if (values.help) process.stdout.write(usage)
  else if (!isStep(word) || others.length > 0) throw new TryError(`one of: ${Object.keys(steps).join(', ')}`)
  else await main(word, resolve(values.data))
} catch (error) {
  process.stderr.write(`larder try: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
