import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createMetrics } from '../../../../cloud/operations/diag/metrics.ts'
import type { Served } from '../../../../cloud/platform/http/app.ts'
import { schedule } from '../../../../cloud/platform/work/queue.ts'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { createHubMetrics } from '../../../../edge/metrics.ts'
import { problemsOf, readExposition, valueOf } from '../../../support/exposition.ts'
import { openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

const metricsOf = (context: CloudContext) =>
  createMetrics({
    context,
    broker: () => ({ connected: true, clients: 3 }),
    refused: () => ({
      http_credential: 2,
      http_right: 0,
      mqtt_login: 0,
      mqtt_topic: 0,
      mqtt_packet: 0,
      hub_message: 0,
      hub_identity: 0,
    }),
    commit: 'abc',
  })

onEachDatabase('metrics of the cloud', (open) => {
  test('the metrics report open items of the books, in valid Prometheus format', async () => {
    const db = await open()
    const shop = await openShop(db, { products: [{ price: 300, quantity: 9 }] })
    await shop.paidOrder({ 1: 1 })
    await shop.cart(await shop.customer(), { 1: 1 })
    const now = shop.clock.now()
    await db.transact(async (tx) => {
      await schedule(tx, 'webhook/we_one', ['a', 'b'], now - 5000)
      await schedule(tx, 'webhook/we_two', 'c', now - 9000)
      await schedule(tx, 'retention', 'all', now + 5000)
    })
    await db.kysely.updateTable('due_work').set({ due_at: null }).where('subject', '=', 'b').execute()
    const metrics = metricsOf(shop.context)
    metrics.onServed({ method: 'GET', route: '/api/v1/owners/hubs', status: 200, seconds: 0.03 })
    metrics.onServed({ method: 'BREW', route: 'none', status: 404, seconds: 0.001 })
    // A second scrape replaces the first one; the values are not added.
    await metrics.read()
    const { text, type } = await metrics.read()
    expect(type).toMatch(/^text\/plain/)
    expect(problemsOf(text)).toEqual([])
    const told = (name: string, labels: Record<string, string> = {}) => valueOf(text, name, labels)
    expect([told('larder_hubs', { state: 'online' }), told('larder_hubs', { state: 'never' })]).toEqual([
      1, 0,
    ])
    expect([told('larder_orders', { status: 'queued' }), told('larder_orders', { status: 'ready' })]).toEqual(
      [1, 0],
    )
    expect(told('larder_outbox_hubs')).toBe(1)
    // One family for all webhooks.
    expect(told('larder_due_work', { kind: 'webhook' })).toBe(2)
    expect(told('larder_due_work_age_seconds', { kind: 'webhook' })).toBe(9)
    expect(told('larder_due_work_exhausted', { kind: 'webhook' })).toBe(1)
    expect(told('larder_due_work', { kind: 'retention' })).toBeUndefined()
    expect([told('larder_refunds_due'), told('larder_dead_letters'), told('larder_database_up')]).toEqual([
      0, 0, 1,
    ])
    expect(told('larder_http_requests_total', { method: 'other', route: 'none', status: '404' })).toBe(1)
    expect(told('larder_http_request_duration_seconds_count', { route: '/api/v1/owners/hubs' })).toBe(1)
    expect(told('larder_refused_total', { kind: 'http_credential' })).toBe(2)
    if (db.kind === 'postgres') expect(told('larder_database_connections_limit', { pool: 'gateway' })).toBe(6)
  })

  test('the metrics without the books are served while the database is down, and report it', async () => {
    const { context } = await openShop(await open(), { onFault: () => {} })
    const away = new Proxy(context.db, {
      get: (target, name) => {
        if (name === 'kysely') throw new Error('away')
        return Reflect.get(target, name) as unknown
      },
    })
    const { text } = await metricsOf({ ...context, db: away }).read()
    expect(problemsOf(text)).toEqual([])
    expect(valueOf(text, 'larder_database_up')).toBe(0)
    expect(valueOf(text, 'larder_hubs', { state: 'online' })).toBeUndefined()
    expect(valueOf(text, 'process_start_time_seconds')).toBeGreaterThan(0)
  })
})

test('the metrics of requests use the documented route, never the called path', async () => {
  const seen: Served[] = []
  const { call, key } = await openCloud({ onServed: (served) => void seen.push(served) })
  await call('GET', '/api/v1/owners/hubs', { key: await key(['hubs:read']) })
  await call('GET', '/users/some-stranger/orders/17')
  await call('GET', '/api/v1/users/some-stranger/orders/18')
  await call('GET', '/nowhere/secret-token')
  await call('GET', '/healthz')
  const orders = '/api/v1/users/{user_id}/orders/{order_id}'
  expect(seen.map(({ route, status }) => [route, status])).toEqual([
    ['/api/v1/owners/hubs', 200],
    [orders, 401],
    [orders, 401],
    ['none', 404],
    ['/healthz', 200],
  ])
})

test('each request has a log line if the operator enables it, without its query values', async () => {
  const lines: [level: string, fields: object][] = []
  const at = (level: string) => (fields: object, text: string) =>
    void (text === 'request' && lines.push([level, fields]))
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const { call, context } = await openCloud({ log })
  await call('GET', '/nowhere?token=secret')
  context.settings.accessLog = true
  await call('GET', '/users/user?token=secret')
  expect(lines.map(([level]) => level)).toEqual(['debug', 'info'])
  expect(lines[1]![1]).toEqual({
    requestId: expect.any(String) as string,
    method: 'GET',
    path: '/users/user',
    route: '/api/v1/users/user',
    status: 401,
    ms: expect.any(Number) as number,
    address: '192.0.2.1',
  })
  expect(JSON.stringify(lines)).not.toContain('secret')
})

test('the dashboard uses only existing metrics', async () => {
  const { context } = await openCloud()
  const hub = createHubMetrics({
    hubId: 1,
    store: { commits: () => 1, isFull: () => false },
    hub: () =>
      ({
        core: {
          orders: () => [],
          unknownOperations: () => [],
          quietMs: () => 1,
          health: () => ({ accepting_orders: true, fridges: [{ fridge_number: 1, temperature: 3 }] }),
        },
        sync: { state: () => ({ phase: 'welcomed', heardMsAgo: 1 }) },
        controllers: {
          links: () => [{ controller: 'bins', up: true }],
          losses: () => new Map([['bins', 2]]),
        },
        outbox: { position: () => ({ base: 1, last: 3 }) },
      }) as never,
  })
  const texts = [(await metricsOf(context).read()).text, (await hub()).text]
  const names = new Set(texts.flatMap((text) => [...readExposition(text).types.keys()]))
  const dashboard = JSON.parse(
    readFileSync(new URL('../../../../cloud/grafana/larder.json', import.meta.url), 'utf8'),
  ) as { panels: { targets: { expr: string }[] }[] }
  const asked = dashboard.panels
    .flatMap(({ targets }) => targets)
    .flatMap(({ expr }) => expr.match(/\b(larder|nodejs|process)_\w+/g) ?? [])
  expect(asked.length).toBeGreaterThan(15)
  expect(asked.filter((name) => !names.has(name.replace(/_bucket$/, '')))).toEqual([])
})
