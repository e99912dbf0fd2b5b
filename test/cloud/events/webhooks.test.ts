import { Webhook } from 'standardwebhooks'
import { afterEach, expect, test, vi } from 'vitest'
import type { Delivery, WebhookEndpoint } from '../../../protocol/contract/owner-webhooks.ts'
import { scopes } from '../../../protocol/model/scopes.ts'
import { issueApiKey } from '../../../cloud/platform/credentials/api-keys.ts'
import { grantRole } from '../../../cloud/platform/credentials/roles.ts'
import { raiseAlarm } from '../../../cloud/events/alarms/alarms.ts'
import { publish } from '../../../cloud/events/publish.ts'
import { openService, type Service } from '../../world/service.ts'
import { onEachDatabase } from '../../world/database.ts'
import { add, happen, url } from './support/endpoint.ts'
import { lockWaits } from '../../world/lock-waits.ts'

afterEach(() => void vi.useRealTimers())

const deliveries = async ({ owner }: Service, { id }: { id: string }): Promise<Delivery[]> =>
  ((await owner('GET', `webhooks/${id}/deliveries?limit=100`)).json as { data: Delivery[] }).data

/** Runs the work that is due now, and then the work that is due `ms` later. */
async function after({ shop, cloud }: Service, ms: number): Promise<void> {
  shop.clock.advance(ms)
  await cloud.work.drain()
}
const SECOND = 1000
const HOUR = 3_600_000
const DAY = 24 * HOUR

onEachDatabase('webhooks', (open) => {
  test('a delivery contains the event of the list, signed as in Standard Webhooks', async () => {
    const service = await openService(open)
    const { shop, poster, owner } = service
    const { secret } = await add(service)
    await shop.paidOrder({ 1: 1 })
    await publish(shop.context)
    await service.cloud.work.drain()
    const [event] = ((await owner('GET', 'events')).json as { data: { id: string; created_at: string }[] })
      .data
    const [sent] = poster.sent
    vi.useFakeTimers({ toFake: ['Date'], now: shop.clock.now() })
    expect(new Webhook(secret).verify(sent!.body, { ...sent!.headers })).toEqual({
      type: 'order.paid',
      timestamp: event!.created_at,
      data: (event as unknown as { data: object }).data,
    })
    expect(sent!.headers['webhook-id']).toBe(event!.id)
    expect(() => new Webhook(secret).verify(`${sent!.body} `, { ...sent!.headers })).toThrow()
  })

  test('the removal of a webhook during a publication does not affect other webhooks', async () => {
    const service = await openService(open)
    const { context } = service.shop
    const { db } = context
    const { id } = await add(service)
    await db.kysely
      .insertInto('alarm_contacts')
      .values({
        owner_id: 1,
        email: 'a@larder.example',
        name: null,
        severity: 'info',
        created_at: 1,
        confirmed_at: 1,
      })
      .execute()
    const alarm = { hubId: 1, kind: 'row_blocked', subject: 'row 1/1/1' } as const
    await db.transact((tx) => raiseAlarm(tx, context, alarm))
    let mayEnd = () => {}
    const waits = new Promise<void>((resolve) => (mayEnd = resolve))
    let removal: Promise<void> | undefined
    await new Promise<void>((removed) => {
      removal = db.transact(async (tx) => {
        await tx.q.deleteFrom('alarm_contacts').execute()
        await tx.q.deleteFrom('webhook_endpoints').where('id', '=', id).execute()
        removed()
        await waits
      })
    })
    const published = publish(context)
    await lockWaits(db)
    mayEnd()
    await Promise.all([removal, published])
    expect((await service.owner('GET', 'events')).json).toMatchObject({ data: [{ type: 'alarm.raised' }] })
  })

  test('a failed delivery is repeated on schedule with the same id, and abandoned at the end', async () => {
    const service = await openService(open)
    const { poster, shop } = service
    const endpoint = await add(service)
    poster.answer = () => ({ status: 500 })
    await happen(service)
    await service.cloud.work.drain()
    const times: number[] = [shop.clock.now()]
    for (let attempt = 1; attempt < 10; attempt += 1) {
      const [delivery] = await deliveries(service, endpoint)
      expect([delivery!.state, delivery!.attempts.length]).toEqual(['pending', attempt])
      await after(service, Date.parse(delivery!.next_attempt_at!) - shop.clock.now())
      times.push(shop.clock.now())
    }
    const pauses = times.slice(1).map((at, index) => at - times[index]!)
    const schedule = [
      5 * SECOND,
      300 * SECOND,
      1800 * SECOND,
      ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
    ]
    pauses.forEach((pause, index) => {
      expect(pause).toBeGreaterThanOrEqual(schedule[index]!)
      expect(pause).toBeLessThanOrEqual(schedule[index]! * 1.1 + 1)
    })
    const [delivery] = await deliveries(service, endpoint)
    expect([delivery!.state, delivery!.attempts.length, delivery!.next_attempt_at]).toEqual([
      'failed',
      10,
      null,
    ])
    expect(new Set(poster.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    await after(service, 3 * DAY)
    expect(poster.sent).toHaveLength(10)
  })

  test('a failing event does not delay the events after it', async () => {
    const service = await openService(open)
    const { poster } = service
    const endpoint = await add(service)
    poster.answer = ({ body }) => ({ status: body.includes('"number":1}') ? 500 : 204 })
    for (const number of [1, 2, 3]) await happen(service, number)
    await service.cloud.work.drain()
    const states = (await deliveries(service, endpoint)).map(({ state }) => state)
    expect(states).toEqual(['delivered', 'delivered', 'pending'])
  })

  test('a webhook that hangs with many pending events delays only itself', async () => {
    const service = await openService(open)
    const { poster, shop, cloud } = service
    await add(service, { url: 'https://dead.example/' })
    await add(service)
    const hanging: ((posted: { error: string }) => void)[] = []
    poster.answer = ({ url: to }) =>
      to.includes('dead') ? new Promise((resolve) => hanging.push(resolve)) : { status: 200 }
    cloud.work.start()
    for (let number = 1; number <= 20; number += 1) await happen(service, number)
    const cameTo = (to: string): number => poster.sent.filter((sent) => sent.url === to).length
    await vi.waitFor(
      () => {
        shop.clock.advance(10)
        expect(cameTo(url)).toBe(20)
      },
      { timeout: 10_000, interval: 5 },
    )
    expect(cameTo('https://dead.example/')).toBe(shop.context.settings.webhookConcurrency)
    const stopped = cloud.work.stop()
    for (const end of hanging) end({ error: 'no answer' })
    await stopped
  })

  test('a webhook is disabled at once by 410, and after five days without success; a success resets the five days', async () => {
    const service = await openService(open)
    const { poster, owner, cloud } = service
    const gone = await add(service, { event_types: ['alarm.cleared'] })
    poster.answer = () => ({ status: 410 })
    await happen(service, 1, 'alarm.cleared')
    await cloud.work.drain()
    expect((await owner('GET', `webhooks/${gone.id}`)).json).toMatchObject({
      state: 'disabled',
      disabled_reason: 'gone',
    })
    await happen(service, 2, 'alarm.cleared')
    expect(await deliveries(service, gone)).toHaveLength(1)

    const failing = await add(service, { event_types: ['alarm.raised'] })
    const state = async () => (await owner('GET', `webhooks/${failing.id}`)).json as WebhookEndpoint
    const fail = async (status: number) => {
      poster.answer = () => ({ status })
      await happen(service)
      await cloud.work.drain()
    }
    await fail(500)
    await after(service, 4 * DAY)
    await fail(200)
    await fail(500)
    await after(service, 4 * DAY)
    expect((await state()).state).toBe('enabled')
    await after(service, DAY + 1)
    await fail(500)
    expect(await state()).toMatchObject({ state: 'disabled', disabled_reason: 'failing' })

    const { url: address, event_types, hub_ids } = await state()
    const on = await owner('PUT', `webhooks/${failing.id}`, {
      url: address,
      event_types,
      hub_ids,
      state: 'enabled',
    })
    expect(on.json).toMatchObject({ state: 'enabled', disabled_reason: null })
    await fail(200)
    expect((await deliveries(service, failing))[0]!.state).toBe('delivered')
  })

  test('a webhook is not disabled by the first failure after a time in which nothing was tried', async () => {
    const service = await openService(open)
    const { poster, owner, cloud } = service
    const { id } = await add(service)
    const state = async () => ((await owner('GET', `webhooks/${id}`)).json as WebhookEndpoint).state
    poster.answer = () => ({ status: 500 })
    await happen(service, 1)
    for (let hour = 0; hour < 100; hour += 1) await after(service, HOUR)
    expect((await deliveries(service, { id }))[0]!.state).toBe('failed')
    await after(service, 5 * DAY)
    await happen(service, 2)
    await cloud.work.drain()
    expect(await state()).toBe('enabled')
    // From now on every attempt fails for five days.
    for (let day = 0; day < 5; day += 1) {
      await after(service, DAY)
      await happen(service, 3)
      await cloud.work.drain()
    }
    expect(await state()).toBe('disabled')
  })

  test('a webhook with a new address is not disabled by failures at the former one', async () => {
    const service = await openService(open)
    const { poster, owner, cloud } = service
    const { id, event_types } = await add(service)
    poster.answer = () => ({ status: 500 })
    await happen(service)
    for (let day = 0; day < 4; day += 1) {
      await after(service, DAY)
      await happen(service)
    }
    await owner('PUT', `webhooks/${id}`, { url: `${url}/corrected`, event_types })
    for (let day = 0; day < 2; day += 1) await after(service, DAY)
    await happen(service)
    await cloud.work.drain()
    expect((await owner('GET', `webhooks/${id}`)).json).toMatchObject({ state: 'enabled' })
  })

  test('a webhook receives the types and hubs that it selected, and any test', async () => {
    const service = await openService(open)
    const { owner, poster, cloud } = service
    const endpoint = await add(service, { event_types: ['alarm.cleared'], hub_ids: [1] })
    await happen(service, 1, 'alarm.raised')
    await happen(service, 2, 'alarm.cleared')
    const tested = await owner('POST', `webhooks/${endpoint.id}/test`)
    expect([tested.status, tested.json]).toEqual([
      202,
      expect.objectContaining({ type: 'webhook.test', state: 'pending' }),
    ])
    await cloud.work.drain()
    // Deliveries at the same time have no order.
    const sent = poster.sent.map(({ body }) => (JSON.parse(body) as { type: string }).type)
    expect(sent.toSorted()).toEqual(['alarm.cleared', 'webhook.test'])
    const { data } = (await owner('GET', 'events')).json as { data: { type: string }[] }
    expect(data.map(({ type }) => type)).toEqual(['alarm.raised', 'alarm.cleared'])
  })

  test('an abandoned delivery is repeated on request, and a stopped process leaves it to the next one', async () => {
    const service = await openService(open)
    const { owner, poster, shop, cloud } = service
    const endpoint = await add(service)
    shop.context.settings.webhookRetryMs = []
    poster.answer = () => ({ error: 'nobody there' })
    await happen(service)
    await cloud.work.drain()
    const [failed] = await deliveries(service, endpoint)
    expect(failed).toMatchObject({ state: 'failed', attempts: [{ error: 'nobody there' }] })
    poster.answer = () => 'stopped'
    expect((await owner('POST', `webhooks/${endpoint.id}/deliveries/${failed!.id}/redeliver`)).status).toBe(
      202,
    )
    const runs = cloud.work.drain()
    await vi.waitFor(() => expect(poster.sent.length).toBeGreaterThan(1))
    poster.answer = () => ({ status: 200 })
    shop.clock.advance(2)
    await runs
    await cloud.work.drain()
    const [delivered] = await deliveries(service, endpoint)
    expect(delivered).toMatchObject({ id: failed!.id, event_id: failed!.event_id, state: 'delivered' })
    expect(delivered!.attempts.map(({ status }) => status)).toEqual([undefined, 200])
  })

  test('an address that is private, unencrypted or invalid is refused at body.url', async () => {
    const { owner } = await openService(open)
    for (const bad of [
      'https://127.0.0.1/x',
      'https://[::1]/x',
      'https://10.1.2.3/',
      'https://169.254.169.254/latest',
      'http://integrator.example/',
      'https://user:word@integrator.example/',
      'ftp://integrator.example/',
      'nonsense',
    ]) {
      const { status, json } = await owner('POST', 'webhooks', { url: bad, event_types: ['*'] })
      expect([bad, status, json]).toEqual([
        bad,
        422,
        expect.objectContaining({
          detail: [expect.objectContaining({ loc: ['body', 'url'], type: 'value_error' })],
        }),
      ])
    }
  })

  test('a key for some hubs, and a person with a role, create and see only webhooks of their hubs', async () => {
    const service = await openService(open)
    const { owner, shop, send, tokenOf } = service
    const { context } = shop
    const { kysely: q } = context.db
    const everywhere = await add(service)
    await grantRole(q, context.runtime, { identity: 'olga', role: 'owner', hubs: [1] })
    const request = { name: 'limited', ownerId: 1, scopes, hubs: [1], expiresAt: null }
    const callers = [
      { 'X-API-Key': (await issueApiKey(q, context.runtime, request)).key },
      { Authorization: `Bearer ${await tokenOf('olga')}` },
    ]
    for (const headers of callers) {
      const body = JSON.stringify({ url, event_types: ['*'] })
      const typed = { ...headers, 'Content-Type': 'application/json' }
      const made = await send('POST', '/api/v1/owners/webhooks', typed, body)
      expect([made.status, made.json]).toEqual([201, expect.objectContaining({ hub_ids: [1] })])
      const other = await send('GET', `/api/v1/owners/webhooks/${everywhere.id}`, headers)
      expect(other.status).toBe(404)
    }
    const { data } = (await owner('GET', 'webhooks')).json as { data: unknown[] }
    expect(data).toHaveLength(3)
  })

  test('the removal of a webhook deletes its pending deliveries', async () => {
    const service = await openService(open)
    const { owner, cloud, shop } = service
    const { id } = await add(service)
    await happen(service)
    expect((await owner('DELETE', `webhooks/${id}`)).status).toBe(204)
    await cloud.work.drain()
    const { kysely: q } = shop.context.db
    expect(await q.selectFrom('webhook_deliveries').select('id').execute()).toEqual([])
    const work = q.selectFrom('due_work').select('subject').where('kind', 'like', 'webhook/%')
    expect(await work.execute()).toEqual([])
    expect((await owner('GET', `webhooks/${id}`)).status).toBe(404)
  })
})
