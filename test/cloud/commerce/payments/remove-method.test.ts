import { expect, test } from 'vitest'
import { removeMethod, saveMethod } from '../../../../cloud/commerce/methods/methods.ts'
import { listMethods } from '../../../../cloud/commerce/methods/method-rows.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop } from '../../../world/shop.ts'

const save = (shop: Shop, userId: number, method: string) =>
  saveMethod(shop.services, { userId, method, setDefault: false })
const list = (shop: Shop, userId: number) =>
  listMethods(shop.context.db.kysely, userId, shop.services.processor.name)
const remove = (shop: Shop, userId: number, method: string) => removeMethod(shop.services, { userId, method })
const removals = (shop: Shop) =>
  shop.context.db.kysely.selectFrom('money_operations').selectAll().where('goal', '=', 'ended').execute()

const payWith = async (shop: Shop, userId: number, method: string) => {
  const { id: orderId } = await shop.cart(userId, { 1: 1 })
  return pay(shop.services, { userId, orderId, method })
}

onEachProcessor('payment methods', (open) => {
  test('a removed method is removed here and at the processor, and the newest other method is the default', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const { payment_method_id: visa } = await save(shop, userId, 'pm_card_visa')
    for (const method of ['pm_card_mastercard', 'pm_card_amex']) await save(shop, userId, method)
    await remove(shop, userId, visa)
    expect((await list(shop, userId)).map(({ brand, is_default }) => [brand, is_default])).toEqual([
      ['amex', true],
      ['mastercard', false],
    ])
    expect((await shop.bank.customers())[0]!.methods).toHaveLength(2)
    await expect(remove(shop, userId, visa)).rejects.toMatchObject({ code: 'payment_method_not_found' })
    for (const { payment_method_id } of await list(shop, userId))
      await remove(shop, userId, payment_method_id)
    expect([await list(shop, userId), (await shop.bank.customers())[0]!.methods]).toEqual([[], []])
  })

  test.for([
    ['did it', true],
    ['did not', false],
  ] as const)(
    'a removed method is removed here at once, and at the processor when it answers; it %s',
    async ([, does]) => {
      let isDown = true
      const shop = await open({
        wrapProcessor: (real) => ({
          ...real,
          async detachMethod(request) {
            if (!isDown || does) await real.detachMethod(request)
            if (isDown) throw new ProcessorUnavailable('down')
          },
        }),
      })
      const userId = await shop.customer()
      const { payment_method_id } = await save(shop, userId, 'pm_card_visa')
      await remove(shop, userId, payment_method_id)
      expect(await list(shop, userId)).toEqual([])
      isDown = false
      shop.clock.advance(3_600_000)
      await shop.work.drain()
      expect((await shop.bank.customers()).map(({ methods }) => methods)).toEqual([[]])
      expect(await removals(shop)).toEqual([])
    },
  )

  test('a method that is saved again during its removal can pay if it is listed', async () => {
    let meanwhile: (() => Promise<unknown>) | undefined
    const shop = await open({
      wrapProcessor: (real) => ({
        ...real,
        async detachMethod(request) {
          const work = meanwhile
          meanwhile = undefined
          await work?.()
          return real.detachMethod(request)
        },
      }),
    })
    const userId = await shop.customer()
    const { payment_method_id: method } = await save(shop, userId, 'pm_card_visa')
    meanwhile = () => Promise.allSettled([save(shop, userId, method)])
    await remove(shop, userId, method)
    shop.clock.advance(3_600_000)
    await shop.work.drain()
    await shop.hear()
    for (const { payment_method_id } of await list(shop, userId))
      expect(await payWith(shop, userId, payment_method_id)).toMatchObject({ status: 'succeeded' })
    // Detaching is final: the removal came first.
    expect([await list(shop, userId), (await shop.bank.customers())[0]!.methods]).toEqual([[], []])
    expect(await removals(shop)).toEqual([])
  })

  test('a method that is saved again before its removal has started stays, and can pay', async () => {
    let dies = false
    const shop = await open({
      checkpoint: (point) => {
        if (point === 'method.before-processor' && dies) throw new Error('killed')
      },
      onFault: () => undefined,
    })
    const userId = await shop.customer()
    const { payment_method_id: method } = await save(shop, userId, 'pm_card_visa')
    dies = true
    await remove(shop, userId, method)
    expect(await list(shop, userId)).toEqual([])
    dies = false
    await save(shop, userId, method)
    shop.clock.advance(3_600_000)
    await shop.work.drain()
    await shop.hear()
    expect(await payWith(shop, userId, method)).toMatchObject({ status: 'succeeded' })
  })
})
