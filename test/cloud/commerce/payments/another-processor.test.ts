import { expect, test } from 'vitest'
import { commerceWork } from '../../../../cloud/commerce/work.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { ProcessorUnavailable, type CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { saveMethod } from '../../../../cloud/commerce/methods/save-method.ts'
import { deposit } from '../../../../cloud/commerce/wallet/deposit.ts'
import { onEachDatabase } from '../../support/database.ts'
import { openShop } from '../../support/shop.ts'

const HOUR = 3_600_000

onEachDatabase('where another card processor is configured than before', (open) => {
  test('it is asked nothing of the money of the one before, which waits until that is back', async () => {
    let isDown = false
    const faults: unknown[] = []
    const shop = await openShop(await open(), {
      onFault: (error) => void faults.push(error),
      wrapProcessor: (real) => ({
        ...real,
        createIntent: (request) =>
          isDown ? Promise.reject(new ProcessorUnavailable('down')) : real.createIntent(request),
        detachMethod: () => Promise.reject(new ProcessorUnavailable('down')),
      }),
    })
    const userId = await shop.customer()
    const begin = async (method: string): Promise<number> => {
      const customer = await shop.customer()
      const { id } = await shop.cart(customer, { 1: 1 })
      await pay(shop.services, { userId: customer, orderId: id, method }).catch(() => {})
      return id
    }
    await saveMethod(shop.services, { userId, method: 'pm_card_visa', setDefault: false })
    const waiting = await begin('pm_card_authenticationRequired')
    const paid = await begin('pm_card_visa')
    isDown = true
    const unknown = await begin('pm_card_visa')
    await deposit(shop.services, { userId, amountCents: 500, method: null }).catch(() => {})
    await shop.report({ kind: 'order.failed', order_id: paid, reason: 'jam', bins: [], lines: [] })

    const asked: PropertyKey[] = []
    const other = new Proxy({ name: 'stripe' } as CardProcessor, {
      get: (target, name) => {
        if (name !== 'name') asked.push(name)
        return Reflect.get(target, name)
      },
    })
    const work = new WorkRunner(shop.context, commerceWork({ context: shop.context, processor: other }))
    for (let hour = 0; hour < 3; hour += 1) {
      shop.clock.advance(HOUR)
      await work.drain()
    }
    expect([asked, faults]).toEqual([[], []])
    expect((await shop.payments(waiting))[0]!.status).toBe('requires_action')
    expect((await shop.payments(unknown))[0]!.status).toBe('pending')
    expect(await shop.refunds(paid)).toMatchObject([{ status: 'pending' }])

    isDown = false
    shop.clock.advance(HOUR)
    await shop.work.drain()
    expect(await shop.refunds(paid)).toMatchObject([{ status: 'succeeded' }])
    expect((await shop.payments(waiting))[0]!.status).toBe('canceled')
    expect((await shop.payments(unknown))[0]!.status).toBe('completed')
  })
})
