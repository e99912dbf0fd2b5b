import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { checkoutObstacles } from '../../../../cloud/commerce/orders/checkout.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { unpaidBounds } from '../../../../cloud/commerce/orders/unpaid.ts'
import { hubIntake } from '../../../../cloud/commerce/orders/intake.ts'
import { cartLines } from '../../../../cloud/commerce/orders/price-cart.ts'
import { pay, payFromWallet } from '../../../../cloud/commerce/payments/pay.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import type { Shop, ShopOptions } from '../../../world/shop.ts'
import {
  MINUTE,
  newGuest,
  verify,
  cartOf,
  claim,
  secondHub,
  cartAt,
  type Cart,
} from './support/unpaid-carts.ts'

const products = [{ price: 100, quantity: 500 }]

onEachProcessor('bounds of unpaid orders', (open) => {
  const openWith = (options: ShopOptions = {}) => open({ products, bins: 4, ...options })

  test('any number of unpaid orders leaves a bin for a customer who pays', async () => {
    const shop = await openWith({ bins: 2 })
    for (const method of ['pm_card_authenticationRequired', 'pm_usBankAccount'])
      for (let guest = 0; guest < 4; guest++)
        await pay(shop.services, { ...(await cartOf(shop, 1, await newGuest(shop))), method })
    await shop.paidOrder({ 1: 1 })
  })

  test.each([
    ['guests', newGuest],
    ['accounts without a verified contact', (shop: Shop) => shop.customer()],
  ] as const)(
    'unpaid orders of %s of one network reserve a limited number of units of a hub',
    async (_, newPayer) => {
      const shop = await openWith({ bins: 9 })
      shop.context.settings.unpaidUnitsPerNetwork = 20
      const method = 'pm_card_authenticationRequired'
      const payFrom = async (network: string | undefined, units: number) => {
        const cart = await cartOf(shop, units, await newPayer(shop))
        await pay(shop.services, { ...cart, method, ...(network !== undefined && { network }) })
        return cart
      }
      const first = await payFrom('203.0.113.1', 15)
      const full = { code: 'rate_limit_exceeded', status: 429, details: { share_of: 'network', most: 20 } }
      await expect(payFrom('203.0.113.1', 6)).rejects.toMatchObject(full)
      await payFrom('203.0.113.1', 5)
      await expect(payFrom('203.0.113.1', 1)).rejects.toMatchObject(full)
      expect(await shop.product(1)).toMatchObject({ reserved: 20 })
      // Other networks, and the same network at another hub, have their own shares.
      await payFrom('203.0.113.2', 20)
      const elsewhere = await shop.customer()
      const orderId = await cartAt(shop, elsewhere, await secondHub(shop))
      await pay(shop.services, { userId: elsewhere, orderId, method, network: '203.0.113.1' })
      // A customer with a verified contact has only the bound per customer.
      const cart = await cartOf(shop, 3)
      await verify(shop, cart.userId)
      await pay(shop.services, { ...cart, method, network: '203.0.113.1' })
      // Paid orders and carts do not count, and the network is forgotten.
      await deleteOrder(shop.services, first, 'user')
      expect(await shop.order(first.orderId)).toMatchObject({ payer_network: null })
      await payFrom('203.0.113.1', 10)
      shop.clock.advance(15 * MINUTE)
      await shop.work.drain()
      const kept = await shop.context.db.kysely.selectFrom('orders').select('payer_network').execute()
      expect(kept.filter(({ payer_network }) => payer_network !== null)).toEqual([])
    },
  )

  test.each(['pm_card_authenticationRequired', 'external'])(
    'a change of the method, first %s, does not prolong the hold',
    async (first) => {
      const shop = await openWith({ bins: 9 })
      const cart = await cartOf(shop, 5)
      const methods = [first, first === 'external' ? 'pm_card_authenticationRequired' : 'external'] as const
      // Each time within the time of a claim.
      for (let turn = 0; turn < 6; turn++) {
        await pay(shop.services, { ...cart, method: methods[turn % 2]! })
        shop.clock.advance(2.4 * MINUTE)
        await shop.work.drain()
        await shop.hear()
        expect(await shop.product(1)).toMatchObject({ reserved: 5 })
      }
      await pay(shop.services, { ...cart, method: methods[0] })
      shop.clock.advance((15 - 14.4) * MINUTE)
      await shop.work.drain()
      expect(await shop.product(1)).toMatchObject({ reserved: 0 })
    },
  )

  test.each([
    [
      'the wallet is empty',
      'insufficient_funds',
      (shop: Shop, cart: Cart) => payFromWallet(shop.services, cart),
    ],
    [
      'the expected total is another one',
      'total_changed',
      (shop: Shop, cart: Cart) => pay(shop.services, { ...cart, method: 'pm_card_visa', expectedTotal: 1 }),
    ],
    [
      'no bin can be claimed',
      'no_bin_available',
      async (shop: Shop, cart: Cart) => {
        await shop.paidOrder({ 1: 1 })
        return claim(shop, cart)
      },
    ],
  ] as const)('the present payment continues if %s for another method', async (_, code, payOtherwise) => {
    const shop = await openWith({ bins: 2 })
    const cart = await cartOf(shop, 5)
    await pay(shop.services, { ...cart, method: 'pm_card_authenticationRequired' })
    const before = await shop.payments(cart.orderId)
    await expect(payOtherwise(shop, cart)).rejects.toMatchObject({ code })
    expect(await shop.payments(cart.orderId)).toEqual(before)
    expect((await shop.order(cart.orderId)).processing_status).toBe(S.PENDING_PAYMENT)
    expect((await shop.items(cart.orderId)).map(({ reserved }) => reserved)).toEqual([5])
  })

  test('the first unpaid order of a network may have as many units as any order', async () => {
    const shop = await openWith({ bins: 9 })
    shop.context.settings.unpaidUnitsPerNetwork = 1
    for (let count = 0; count < 2; count++) {
      const cart = await cartOf(shop, 20)
      await pay(shop.services, { ...cart, method: 'pm_card_visa', network: '203.0.113.1' })
    }
  })

  test('an order of more units than may be unpaid is refused before anything is frozen', async () => {
    const shop = await openWith({ bins: 9 })
    shop.context.settings.unpaidUnitsPerOrder = 80
    const cart = await cartOf(shop, 81)
    const intake = await hubIntake(shop.context.db.kysely, shop.context, 1)
    const lines = await cartLines(shop.context.db.kysely, cart.orderId)
    const options = { claim: false, unpaid: unpaidBounds(shop.context, { isVerified: false }, undefined) }
    expect(await checkoutObstacles(shop.context.db.kysely, lines, intake, options)).toMatchObject([
      { code: 'invalid_quantity' },
    ])
    for (const method of ['pm_card_visa', 'external'])
      await expect(pay(shop.services, { ...cart, method })).rejects.toMatchObject({
        code: 'invalid_quantity',
        details: { units: 81, most: 80 },
      })
    expect(await shop.product(1)).toMatchObject({ reserved: 0 })
    await shop.cart(cart.userId, { 1: 80 })
    await pay(shop.services, { ...cart, method: 'pm_card_visa' })
  })
})
