import { expect, test } from 'vitest'
import { saveMethod } from '../../../../cloud/commerce/methods/methods.ts'
import { listMethods } from '../../../../cloud/commerce/methods/method-rows.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { deleteUser } from '../../../../cloud/people/users/delete-user.ts'
import { atEachCheckpoint } from '../../support/each-checkpoint.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { testMedia } from '../../support/media.ts'
import type { Shop } from '../../../world/shop.ts'

const save = (shop: Shop, userId: number, method = 'pm_card_visa') =>
  saveMethod(shop.services, { userId, method, setDefault: false })
const customerWithMethod = async (shop: Shop): Promise<number> => {
  const userId = await shop.customer()
  await save(shop, userId)
  return userId
}
const list = (shop: Shop, userId: number) =>
  listMethods(shop.context.db.kysely, userId, shop.services.processor.name)

const claims = { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] }
const erase = (shop: Shop, userId: number) =>
  deleteUser(
    shop.services,
    testMedia(shop.context),
    { kind: 'user', actor: 'x', identity: 'x', claims, userId },
    { forfeit: false },
  )
const isErased = async (shop: Shop, userId: number): Promise<boolean> => {
  const row = await shop.context.db.kysely
    .selectFrom('users')
    .select('deleted_at')
    .where('id', '=', userId)
    .executeTakeFirstOrThrow()
  return row.deleted_at !== null
}
const removals = (shop: Shop) =>
  shop.context.db.kysely.selectFrom('money_operations').selectAll().where('goal', '=', 'ended').execute()

onEachProcessor('the deletion of a customer at the processor', (open) => {
  test('a deleted customer and the customer’s methods are deleted at the processor, and old payments can still be refunded', async () => {
    const shop = await open()
    const [ada, eve] = [await shop.customer(), await shop.customer()]
    for (const method of ['pm_card_visa', 'pm_card_amex']) await save(shop, ada, method)
    await save(shop, eve)
    const order = await shop.paidOrder({ 1: 1 })
    await shop.context.db.kysely
      .updateTable('orders')
      .set({ user_id: ada })
      .where('id', '=', order.id)
      .execute()
    await shop.report({ kind: 'order.preparing', order_id: order.id, bins: [1] })
    await expect(erase(shop, ada)).rejects.toMatchObject({ code: 'order_in_progress' })
    expect(await shop.bank.customers()).toHaveLength(2)
    await shop.report({ kind: 'order.failed', order_id: order.id, reason: 'jam', bins: [], lines: [] })
    await erase(shop, ada)
    expect((await shop.bank.customers()).map(({ methods }) => methods.length)).toEqual([1])
    expect([await list(shop, ada), (await list(shop, eve)).length]).toEqual([[], 1])
    await shop.work.drain()
    expect((await shop.order(order.id)).payment_status).toBe('refunded')
    expect(await removals(shop)).toEqual([])
    await expect(save(shop, ada)).rejects.toMatchObject({ code: 'user_not_found' })
  })

  test.for([
    ['did it', true],
    ['did not', false],
  ] as const)(
    'a customer is deleted here while the processor does not answer, and there when it answers; it %s',
    async ([, does]) => {
      let isDown = true
      const shop = await open({
        wrapProcessor: (real) => ({
          ...real,
          async removeCustomer(ref) {
            if (!isDown || does) await real.removeCustomer(ref)
            if (isDown) throw new ProcessorUnavailable('down')
          },
        }),
      })
      const userId = await shop.customer()
      await save(shop, userId)
      await erase(shop, userId)
      expect([await isErased(shop, userId), (await removals(shop)).length]).toEqual([true, 1])
      shop.clock.advance(31_000)
      await shop.work.drain()
      isDown = false
      shop.clock.advance(3_600_000)
      await shop.work.drain()
      expect([await shop.bank.customers(), await removals(shop)]).toEqual([[], []])
    },
  )

  test('a customer is deleted at the processor too if the processor never confirmed the creation', async () => {
    let isDown = true
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        async createCustomer(request) {
          const ref = await real.createCustomer(request)
          if (isDown) throw new ProcessorUnavailable('down')
          return ref
        },
      }),
    })
    const userId = await shop.customer()
    await expect(save(shop, userId)).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect(await shop.bank.customers()).toHaveLength(1)
    isDown = false
    await erase(shop, userId)
    expect([await shop.bank.customers(), await removals(shop)]).toEqual([[], []])
  })

  test('a crash at any point of a deletion leaves the customer deleted in both places, or in neither', async () => {
    const points = await atEachCheckpoint(
      open,
      customerWithMethod,
      (shop, userId) => erase(shop, userId),
      async (shop, userId) => {
        const erased = await isErased(shop, userId)
        expect((await shop.bank.customers()).length).toBe(erased ? 0 : 1)
        expect((await list(shop, userId)).length).toBe(erased ? 0 : 1)
        expect(await removals(shop)).toEqual([])
      },
    )
    for (const point of ['user.after-erase', 'customer.before-processor', 'customer.after-processor'])
      expect(points).toContain(point)
  })
})
