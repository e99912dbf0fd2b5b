import { expect, test } from 'vitest'
import type { CloudContext } from '../../../../cloud/platform/context.ts'
import { noticeWork, type Senders } from '../../../../cloud/people/notifications/notices.ts'
import { registerPush } from '../../../../cloud/people/users/push-configs.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import type { Device, Sender, SendResult } from '../../../../cloud/people/notifications/sender.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { drop, droppedLines, openShop, type Shop } from '../../../world/shop.ts'

const MINUTE = 60_000

interface Sent {
  token: string | null
  title: string
  orderId: number
  tag: string
}

function recorder(answer: (device: Device | null) => SendResult | Error = () => 'sent') {
  const sent: Sent[] = []
  const sender: Sender = {
    send(device, { title }, { orderId, tag }) {
      sent.push({ token: device?.token ?? null, title, orderId, tag })
      const result = answer(device)
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result)
    },
  }
  const senders: Senders = { ios: sender, android: sender, web: sender, none: sender }
  return { sent, senders }
}

async function addDevice({ context }: Shop, userId: number, token: string): Promise<void> {
  const now = context.runtime.clock.now()
  await context.db.kysely
    .insertInto('push_configs')
    .values({
      user_id: userId,
      device_id: token,
      platform: 'android',
      push_token: context.sealer.seal('push token', token),
      token_digest: token,
      app_version: null,
      locale: null,
      enabled: 1,
      created_at: now,
      updated_at: now,
    })
    .execute()
}

async function readyOrder(shop: Shop): Promise<{ id: number; userId: number }> {
  const { id, user_id } = await shop.paidOrder({ 1: 1 })
  const [line] = await shop.items(id)
  await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] }, drop(line!, id, 4))
  await shop.report({
    kind: 'order.ready',
    order_id: id,
    bins: [1],
    lines: droppedLines([line!]),
  })
  return { id, userId: user_id }
}

const run = (context: CloudContext, kind: string, { senders } = recorder()): Promise<number[]> =>
  new WorkRunner(context, noticeWork(context, senders)).drain([kind])
const expiring = (context: CloudContext): Promise<number[]> => run(context, 'notice.expiring')
const unclaimed = (context: CloudContext): Promise<number[]> => run(context, 'notice.unclaimed')
const deliverNotices = (context: CloudContext, senders: Senders): Promise<number[]> =>
  run(context, 'notice.deliver', { sent: [], senders })
const statesOf = async ({ context }: Shop): Promise<string[]> =>
  (await context.db.kysely.selectFrom('notifications').select('state').orderBy('id').execute()).map(
    ({ state }) => state,
  )

onEachDatabase('notices', (open) => {
  test('a notice announces the expiry of a cart five minutes before, once, but not for an empty cart', async () => {
    const shop = await openShop(await open())
    const { context, clock } = shop
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await shop.cart(await shop.customer(), {})
    await addDevice(shop, userId, 'phone')
    await addDevice(shop, userId, 'tablet')
    clock.advance(25 * MINUTE - 1)
    expect(await expiring(context)).toEqual([])
    clock.advance(1)
    expect(await expiring(context)).toEqual([id])
    expect(await expiring(context)).toEqual([])
    const { sent, senders } = recorder()
    await deliverNotices(context, senders)
    await deliverNotices(context, senders)
    const expected = ['phone', 'tablet'].map((token) => ({
      token,
      title: 'Your cart is about to expire',
      orderId: id,
      tag: expect.stringMatching(/^[\w-]{1,32}$/) as string,
    }))
    expect(sent).toHaveLength(2)
    expect(sent).toEqual(expect.arrayContaining(expected))
  })

  test('one notice reports an order that has waited for ten minutes, from any process', async () => {
    const shop = await openShop(await open())
    const { context, clock } = shop
    const { id } = await readyOrder(shop)
    clock.advance(10 * MINUTE - 1)
    expect(await unclaimed(context)).toEqual([])
    clock.advance(1)
    const told = await Promise.all([unclaimed(context), unclaimed(context), unclaimed(context)])
    expect(told.flat()).toEqual([id])
    const { sent, senders } = recorder()
    await Promise.all([deliverNotices(context, senders), deliverNotices(context, senders)])
    expect(sent).toMatchObject([{ token: null, title: 'Your order is waiting', orderId: id }])
  })

  test('a device that registers a new token while its old one is refused gets the notice at the new one', async () => {
    const shop = await openShop(await open())
    const { context } = shop
    const { userId } = await readyOrder(shop)
    const device = { device_id: 'phone', platform: 'android' as const }
    await registerPush(context, userId, { ...device, push_token: 'old' })
    shop.clock.advance(10 * MINUTE)
    await unclaimed(context)
    const told: (string | undefined)[] = []
    const sender: Sender = {
      async send(to) {
        told.push(to?.token)
        if (to?.token !== 'old') return 'sent'
        await registerPush(context, userId, { ...device, push_token: 'new' })
        return 'gone'
      },
    }
    const senders = { ios: sender, android: sender, web: sender, none: sender }
    await deliverNotices(context, senders)
    shop.clock.advance(MINUTE)
    await deliverNotices(context, senders)
    expect(told).toEqual(['old', 'new'])
    expect(await statesOf(shop)).toEqual(['sent'])
  })

  test('a customer without push messages gets none', async () => {
    const shop = await openShop(await open())
    const { id, userId } = await readyOrder(shop)
    await addDevice(shop, userId, 'phone')
    await shop.context.db.kysely.updateTable('users').set({ notify_push: 0 }).execute()
    shop.clock.advance(10 * MINUTE)
    expect(await unclaimed(shop.context)).toEqual([id])
    const { sent, senders } = recorder()
    await deliverNotices(shop.context, senders)
    expect(sent.map(({ token }) => token)).toEqual([null])
  })

  test('a notice that was certainly not accepted is retried with growing pauses, and abandoned in the end', async () => {
    const shop = await openShop(await open())
    await readyOrder(shop)
    shop.clock.advance(10 * MINUTE)
    await unclaimed(shop.context)
    const { sent, senders } = recorder(() => 'later')
    await deliverNotices(shop.context, senders)
    await deliverNotices(shop.context, senders)
    expect(sent).toHaveLength(1)
    for (let retry = 0; retry < 10; retry += 1) {
      shop.clock.advance(30_000 * 2 ** retry)
      await deliverNotices(shop.context, senders)
    }
    expect(sent).toHaveLength(6)
    expect(await statesOf(shop)).toEqual(['failed'])
  })

  test('a notice with an unknown outcome is retried under the same tag, and abandoned in the end', async () => {
    const faults: unknown[] = []
    const shop = await openShop(await open(), { onFault: (error) => faults.push(error) })
    await readyOrder(shop)
    shop.clock.advance(10 * MINUTE)
    await unclaimed(shop.context)
    const { sent, senders } = recorder(() => new Error('connection lost'))
    for (let retry = 0; retry < 10; retry += 1) {
      await deliverNotices(shop.context, senders)
      shop.clock.advance(30_000 * 2 ** retry)
    }
    expect([sent.length, faults.length]).toEqual([6, 6])
    expect(new Set(sent.map(({ tag }) => tag)).size).toBe(1)
    expect(await statesOf(shop)).toEqual(['failed'])
  })

  test('a notice to a device with a token sealed by another secret is abandoned in the end', async () => {
    const faults: unknown[] = []
    const shop = await openShop(await open(), { onFault: (error) => faults.push(error) })
    const { userId } = await readyOrder(shop)
    await addDevice(shop, userId, 'phone')
    await shop.context.db.kysely.updateTable('push_configs').set({ push_token: 'lost' }).execute()
    shop.clock.advance(10 * MINUTE)
    await unclaimed(shop.context)
    const { sent, senders } = recorder()
    for (let retry = 0; retry < 10; retry += 1) {
      await deliverNotices(shop.context, senders)
      shop.clock.advance(30_000 * 2 ** retry)
    }
    expect([sent.length, faults.length]).toEqual([0, 6])
    expect(await statesOf(shop)).toEqual(['failed'])
  })

  test.each(['notice.before-send', 'notice.after-send'])(
    'a notice is sent by another process after the lease if its process dies at %s, and by none after that',
    async (death) => {
      let isDead = false
      const shop = await openShop(await open(), {
        checkpoint: (point) => {
          if (isDead && point === death) throw new Error('crash')
        },
        onFault: () => {},
      })
      const { context, clock } = shop
      await readyOrder(shop)
      clock.advance(10 * MINUTE)
      await unclaimed(context)
      isDead = true
      const { sent, senders } = recorder()
      await deliverNotices(context, senders)
      const before = sent.length
      isDead = false
      clock.advance(context.settings.workLeaseMs)
      await deliverNotices(context, senders)
      expect(sent.length - before).toBe(1)
      expect(await statesOf(shop)).toEqual(['sent'])
      clock.advance(60 * MINUTE)
      await deliverNotices(context, senders)
      expect(sent.length - before).toBe(1)
    },
  )

  test('a device that no longer exists is deleted', async () => {
    const shop = await openShop(await open())
    const { userId } = await readyOrder(shop)
    await addDevice(shop, userId, 'old phone')
    await addDevice(shop, userId, 'new phone')
    shop.clock.advance(10 * MINUTE)
    await unclaimed(shop.context)
    const { sent, senders } = recorder((device) => (device?.token === 'old phone' ? 'gone' : 'sent'))
    await deliverNotices(shop.context, senders)
    expect(sent).toHaveLength(2)
    const left = await shop.context.db.kysely.selectFrom('push_configs').select('device_id').execute()
    expect(left).toEqual([{ device_id: 'new phone' }])
  })
})

onEachDatabase('notices about the result of an order', (open) => {
  /** The notices that a customer with a phone has received so far. */
  async function told(shop: Shop): Promise<string[]> {
    const { sent, senders } = recorder()
    const work = new WorkRunner(shop.context, noticeWork(shop.context, senders))
    await shop.work.drain()
    await work.drain()
    return sent.map(({ title }) => title)
  }

  test('READY is reported at once, and again only if the customer does not come', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await readyOrder(shop)
    expect(await told(shop)).toEqual(['Your order is ready'])
    expect(await told(shop)).toEqual([])
    shop.clock.advance(10 * MINUTE)
    expect(await told(shop)).toEqual(['Your order is waiting'])
    await shop.report({ kind: 'order.unclaimed', order_id })
    expect(await told(shop)).toEqual(['Your order was not collected'])
  })

  test('FAILED and TIMED_OUT are reported together with the refund', async () => {
    const shop = await openShop(await open())
    for (const [kind, title] of [
      ['order.failed', 'Your order could not be completed'],
      ['order.timed_out', 'Your order took too long'],
    ] as const) {
      const { id: order_id } = await shop.paidOrder({ 1: 1 })
      const lines = droppedLines(await shop.items(order_id), { units: 0 })
      await shop.report(
        kind === 'order.failed'
          ? { kind, order_id, reason: 'jam', bins: [], lines }
          : { kind, order_id, bins: [], lines },
      )
      expect((await told(shop)).toSorted()).toEqual([title, 'You get money back'].toSorted())
      expect(await told(shop)).toEqual([])
    }
  })

  test('each refund of an order is reported once', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2, 2: 1 })
    const lines = droppedLines(await shop.items(order_id), { units: 0 })
    await shop.report({ kind: 'order.failed', order_id, reason: 'jam', bins: [], lines })
    const titles = await told(shop)
    expect(titles.filter((title) => title === 'You get money back')).toHaveLength(
      (await shop.refunds(order_id)).length,
    )
    expect((await shop.refunds(order_id)).length).toBe(2)
  })
})
