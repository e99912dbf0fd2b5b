import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { expect, test, vi } from 'vitest'
import { runCommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { webhookCommands } from '../../../cloud/cli/webhooks.ts'
import { appendEvent } from '../../../cloud/events/append-event.ts'
import { eventData } from '../../../protocol/contract/event-data.ts'
import { eventTypes } from '../../../protocol/model/event-types.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { numbered } from '../events/support/numbered.ts'
import { testContext } from '../../world/context.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()
const runtime = systemRuntime()

const webhooks = (...args: string[]) => runCommandLine(webhookCommands, runtime, args, environment)
const json = ({ exitCode, stdout, stderr }: Outcome): unknown => {
  expect([exitCode, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
const happen = (number: number): Promise<void> =>
  db.transact(async (tx) => {
    const context = testContext(db, runtime)
    appendEvent(tx, context, { type: 'alarm.raised', hubId: 1, data: numbered(number) })
    await Promise.resolve()
  })

test('a webhook can be added, listed without its secret and tested, and an event can be redelivered', async () => {
  const url = 'https://192.0.0.9.example/hook'
  const added = json(
    await webhooks('add', '--owner', 'One', '--url', url, '--types', 'order.paid', '--hubs', '1'),
  )
  const { id, secret, ...view } = added as { id: string; secret: string }
  expect(secret).toMatch(/^whsec_/)
  expect(view).toMatchObject({ url, event_types: ['order.paid'], hub_ids: [1], state: 'enabled' })
  expect(json(await webhooks('list'))).toEqual([{ owner_id: 1, id, ...view }])
  const tested = json(await webhooks('test', id)) as { id: string }
  expect(tested).toMatchObject({ type: 'webhook.test', state: 'pending' })
  expect(json(await webhooks('redeliver', id, tested.id))).toMatchObject({ id: tested.id })
  expect(await webhooks('redeliver', id, 'dlv_unknown')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('no such delivery') as string,
  })
})

test('the webhooks command refuses invalid arguments in words', async () => {
  const said = async (...args: string[]) => {
    const { exitCode, stderr } = await webhooks(...args)
    expect(exitCode).toBe(/no such (hub|webhook)/.test(stderr) ? 1 : 2)
    return stderr
  }
  expect(await said('add', '--owner', 'One', '--url', 'https://127.0.0.1/')).toContain('not a public address')
  expect(await said('add', '--owner', 'One', '--url', 'https://a.example/', '--types', 'no')).toContain(
    'no such types',
  )
  expect(await said('add', '--owner', 'One', '--url', 'https://a.example/', '--hubs', '2')).toContain(
    'no such hub',
  )
  expect(await said('test', 'we_unknown')).toContain('no such webhook')
  expect((await webhooks('--help')).stdout).toContain('listen --owner NAME')
})

test('a triggered event of each type has the documented form, and is delivered to subscribers', async () => {
  for (const type of eventTypes) {
    const { id, data } = json(await webhooks('trigger', type, '--owner', 'One')) as {
      id: string
      data: object
    }
    // Ids are negative, so that no real object has the same id.
    const mirrored = JSON.parse(
      JSON.stringify(data).replaceAll(/("(?:id|\w+_id|reserved_for_order)":)-/g, '$1'),
    ) as object
    expect([type, eventData[type].safeParse(mirrored).error?.issues]).toEqual([type, undefined])
    expect(JSON.stringify(data)).not.toMatch(/"(id|(?!hub_)\w+_id|reserved_for_order)":\d/)
    const row = await db.kysely
      .selectFrom('events')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    expect(row).toMatchObject({ type, hub_id: 1, owner_id: 1, position: expect.any(Number) as number })
  }
})

test.each([
  ['order.paid', { processing_status_name: 'QUEUED', payment_status: 'completed', ready_at: null, bins: [] }],
  ['order.ready', { processing_status_name: 'READY', bins: [1] }],
  ['order.collecting', { processing_status_name: 'COLLECTING' }],
  ['order.completed', { processing_status_name: 'COMPLETED' }],
  ['order.failed', { processing_status_name: 'FAILED', payment_status: 'refunded' }],
  ['order.timed_out', { processing_status_name: 'TIMED_OUT' }],
  ['order.cancelled', { processing_status_name: 'CANCELLED', payment_status: 'refunded' }],
  ['order.refunded', { payment_status: 'partially_refunded' }],
  ['hub.offline', { online: false, network_status: 'disconnected' }],
  ['inventory.out_of_stock', { quantity: 0 }],
  ['alarm.raised', { cleared_at: null, acknowledged_at: null }],
  ['alarm.cleared', { cleared_at: expect.any(String) as string, acknowledged_at: null }],
] as const)('the example event of %s has the state of its type', async (type, state) => {
  const { data } = json(await webhooks('trigger', type, '--owner', 'One')) as { data: object }
  expect(data).toMatchObject(state)
})

test('a triggered event of a real order shows that order; other owners’ orders and other types are refused', async () => {
  await db.kysely
    .insertInto('users')
    .values({ id: 1, is_anonymous: 1, created_at: 1, updated_at: 1 })
    .execute()
  const order = {
    uuid: '018f0000-0000-7000-8000-000000000001',
    user_id: 1,
    hub_id: 1,
    processing_status: 60,
    payment_status: 'completed',
    currency: 'USD',
    total: 500,
    version: 1,
    open_when_ready: 0,
    bins: '[]',
    created_at: 1,
    updated_at: 1,
  } as const
  await db.kysely
    .insertInto('orders')
    .values({ ...order, id: 7, owner_id: 1 })
    .execute()
  const shown = json(await webhooks('trigger', 'order.completed', '--owner', 'One', '--order', '7'))
  expect(shown).toMatchObject({ hub_id: 1, data: { order_id: 7, user_id: 1, total: 500 } })
  for (const [args, exit] of [
    [['order.completed', '--owner', 'Two', '--order', '7'], 1],
    [['order.completed', '--owner', 'One', '--order', '8'], 1],
    [['hub.online', '--owner', 'One', '--order', '7'], 2],
  ] as const)
    expect(await webhooks('trigger', ...args)).toMatchObject({ exitCode: exit })
})

test('an impossible trigger is refused in words, and in production every trigger', async () => {
  const said = async (...args: string[]) => (await webhooks('trigger', ...args)).stderr
  expect(await said('order.lost', '--owner', 'One')).toContain('no such type: order.lost; one of order.paid')
  expect(await said('order.paid', '--owner', 'One', '--hub', '2')).toContain('no such hub')
  expect(await said('order.paid')).toContain('--owner')
  const production = { ...environment, NODE_ENV: 'production' }
  const args = ['trigger', 'order.paid', '--owner', 'One']
  const { exitCode, stderr } = await runCommandLine(webhookCommands, runtime, args, production)
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('production refuses trigger') as string])
})

test('listen prints events as they arrive, and forwards them with a signature, until it is stopped', async () => {
  const received: { body: string; headers: Record<string, string> }[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      received.push({ body, headers: request.headers as Record<string, string> })
      response.end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const forward = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  let printed = ''
  const stop = new AbortController()
  await happen(1)
  const listening = runCommandLine(
    webhookCommands,
    runtime,
    ['listen', '--owner', 'One', '--forward', forward],
    environment,
    { print: (text) => void (printed += text), signal: stop.signal },
  )
  await vi.waitFor(() => expect(printed).toContain('secret'))
  await happen(2)
  await vi.waitFor(() => expect(printed).toContain('forwarded'), 5000)
  stop.abort()
  expect(await listening).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  receiver.close()
  const lines = printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(lines.slice(1)).toEqual([
    expect.objectContaining({ type: 'alarm.raised', hub_id: 1, data: numbered(2) }),
    { forwarded: lines[1]!['id'], status: 200 },
  ])
  const { body, headers } = received[0]!
  expect(new Webhook(String(lines[0]!['secret'])).verify(body, headers)).toMatchObject({
    data: numbered(2),
  })
})
