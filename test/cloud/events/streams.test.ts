import { expect, test } from 'vitest'
import { scopes } from '../../../protocol/model/scopes.ts'
import { appendEvent } from '../../../cloud/events/append-event.ts'
import { issueApiKey } from '../../../cloud/platform/credentials/api-keys.ts'
import { drop } from '../../world/shop.ts'
import { onEachDatabase } from '../../world/database.ts'
import { openService, type Service } from '../../world/service.ts'
import { type Message, StreamReader } from './support/reader.ts'
import { numbered, numberOf } from './support/numbered.ts'

const keyOf = async ({ shop }: Service, hubs: '*' | number[] = '*', ownerId = 1): Promise<string> => {
  const { context } = shop
  const request = { name: 'stream', ownerId, scopes, hubs, expiresAt: null }
  return (await issueApiKey(context.db.kysely, context.runtime, request)).key
}

async function follow(
  service: Service,
  headers: Record<string, string> = {},
  query = '',
): Promise<StreamReader> {
  const key = headers['X-API-Key'] ?? (await keyOf(service))
  const answer = await service.cloud.app.request(`/api/v1/owners/events/stream${query}`, {
    headers: { 'X-API-Key': key, ...headers },
  })
  expect([answer.status, answer.headers.get('Content-Type')]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
  ])
  const reader = new StreamReader(answer)
  await reader.read()
  return reader
}

const append = (
  { shop: { context } }: Service,
  number: number,
  type: 'alarm.raised' | 'alarm.cleared' = 'alarm.raised',
) =>
  context.db.transact(async (tx) => {
    appendEvent(tx, context, { type, hubId: 1, data: numbered(number) })
    await Promise.resolve()
  })
const numbersOf = (messages: readonly Message[]): number[] =>
  messages.map(({ data }) => numberOf(data.data) as number)

onEachDatabase('live streams', (open) => {
  test('a reader receives all events committed from now on, as in the list', async () => {
    const service = await openService(open)
    service.cloud.start()
    await append(service, 1)
    const reader = await follow(service)
    expect(reader.comments).toEqual(['ok'])
    await append(service, 2)
    const [message] = await reader.take(1)
    const { json } = await service.owner('GET', 'events')
    expect(message!.data).toEqual((json as { data: unknown[] }).data[1])
    expect(message!.id).toBe(message!.data.id)
    await service.cloud.stop()
  })

  test('a reconnect with Last-Event-ID misses and repeats nothing, also for events that are no longer in memory', async () => {
    const service = await openService(open)
    service.shop.context.settings.eventsInMemory = 3
    service.cloud.start()
    const first = await follow(service)
    for (let number = 1; number <= 5; number += 1) await append(service, number)
    const seen = await first.take(2)
    await first.close()
    for (let number = 6; number <= 250; number += 1) await append(service, number)
    const again = await follow(service, { 'Last-Event-ID': seen.at(-1)!.id! })
    const rest = await again.take(248)
    expect(numbersOf([...seen, ...rest])).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
    await append(service, 251)
    expect(numbersOf(await again.take(1))).toEqual([251])
    await service.cloud.stop()
    expect(await again.take(1)).toEqual([])
  })

  test('a Last-Event-ID that was deleted starts with the oldest event, and the stream states the gap', async () => {
    const service = await openService(open)
    await append(service, 1)
    const reader = await follow(service, { 'Last-Event-ID': 'evt_forgotten' })
    expect(reader.comments[0]).toContain('no longer kept')
    expect(numbersOf(await reader.take(1))).toEqual([1])
    await reader.close()
  })

  test('filters apply, and a key for other hubs or another owner sees nothing', async () => {
    const service = await openService(open)
    service.cloud.start()
    const { kysely: q } = service.shop.context.db
    await q.insertInto('owners').values({ name: 'Two' }).execute()
    const all = await follow(service, {}, '?types=alarm.cleared')
    const none = await follow(service, { 'X-API-Key': await keyOf(service, [9]) })
    const other = await follow(service, { 'X-API-Key': await keyOf(service, '*', 2) })
    await append(service, 1)
    await append(service, 2, 'alarm.cleared')
    expect(numbersOf(await all.take(1))).toEqual([2])
    await service.cloud.stop()
    expect([await none.take(1), await other.take(1)]).toEqual([[], []])
  })

  test('comments keep a stream open; a reader that takes nothing is disconnected, and an old stream ends', async () => {
    const service = await openService(open)
    const { clock, context } = service.shop
    context.settings.streamMs = 10 * 60_000
    service.cloud.start()
    const slow = await follow(service)
    const reader = await follow(service)
    const next = reader.read()
    clock.advance(16_000)
    await next
    expect(reader.comments).toEqual(['ok', 'still here'])
    const ended = reader.take(1)
    clock.advance(60_000)
    await expect(slow.read()).rejects.toThrow('took nothing')
    clock.advance(10 * 60_000)
    expect(await ended).toEqual([])
    expect(reader.hasEnded).toBe(true)
    await service.cloud.stop()
  })

  test('a customer’s stream of an order has its present state, each change, its place in the queue and its final state', async () => {
    const service = await openService(open)
    const { shop, cloud } = service
    cloud.start()
    const bootstrapped = await service.customer('ada', 'POST', '/users/user/bootstrap')
    const { user_id: userId } = bootstrapped.json as { user_id: number }
    const ahead = await shop.paidOrder({ 2: 1 })
    const { id: order_id } = await shop.cart(userId, { 1: 1 })
    const token = await service.tokenOf('ada')
    const answer = await cloud.app.request(`/users/${userId}/orders/${order_id}/events`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    const reader = new StreamReader(answer)
    const state = async () => {
      const [message] = await reader.take(1)
      const order = message!.data as unknown as {
        version: number
        processing_status: number
        queue_position: number | null
      }
      expect(message!.id).toBe(String(order.version))
      return [order.processing_status, order.queue_position]
    }
    /** Waits until the order has this state. */
    const until = async (status: number, position: number | null) => {
      for (;;) {
        const [found, place] = await state()
        if (found === status && place === position) return
      }
    }
    expect(await state()).toEqual([0, null])
    await service.customer('ada', 'POST', '/users/payments/pay', {
      order_id,
      payment_method_id: 'pm_card_visa',
    })
    await until(20, 2)
    await shop.report({ kind: 'order.preparing', order_id: ahead.id, bins: [1] })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [2] })
    await until(30, null)
    await shop.report(drop(item!, 1, 4), {
      kind: 'order.ready',
      order_id,
      bins: [2],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [2] }],
    })
    await until(40, null)
    await shop.report({ kind: 'order.completed', order_id })
    await until(60, null)
    expect(await reader.take(1)).toEqual([])
    expect(reader.hasEnded).toBe(true)
    await cloud.stop()
  })
})
