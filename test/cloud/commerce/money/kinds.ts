import { expect } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { forgetCustomers, removeCustomers } from '../../../../cloud/commerce/methods/customers.ts'
import { listMethods } from '../../../../cloud/commerce/methods/method-rows.ts'
import { createSetupIntent, removeMethod, saveMethod } from '../../../../cloud/commerce/methods/methods.ts'
import type { OperationKind } from '../../../../cloud/commerce/money/operations.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import type { CardProcessor } from '../../../../cloud/commerce/processors/processor.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { droppedLines, type Shop } from '../../../world/shop.ts'
import { balanceOf, ledgerAddsUp } from '../../support/wallets.ts'

export type Result = 'done' | 'not done'

/** One kind of money operation, as the generated tests see it. */
export interface KindCase {
  name: string
  kind: OperationKind
  /** The call that the processor answers, or does not answer. */
  call: keyof CardProcessor &
    ('createIntent' | 'createRefund' | `${'attach' | 'detach'}Method` | `${'create' | 'remove'}Customer`)
  /** Whether the processor can refuse it. */
  canBeRefused: boolean
  /** Returns the user or the order that it is about. */
  prepare(shop: Shop, isRefused: boolean): Promise<number>
  act(shop: Shop, id: number, isRefused: boolean): Promise<unknown>
  /** Compares the books with the processor, and returns what both say. */
  result(shop: Shop, id: number): Promise<Result>
  /** The end of the operation if the processor executed it and its answer was lost. */
  afterLostAnswer: Result
  /** The end of the operation if the processor did not execute it and did not answer. */
  afterLostRequest: Result
}

const resultOf = (isDone: boolean): Result => (isDone ? 'done' : 'not done')
const customer = (shop: Shop): Promise<number> => shop.customer()
const methodsOf = async (shop: Shop, userId: number): Promise<string[]> => {
  const rows = await listMethods(shop.context.db.kysely, userId, shop.services.processor.name)
  return rows.map(({ payment_method_id }) => payment_method_id)
}

async function withMethod(shop: Shop): Promise<number> {
  const userId = await shop.customer()
  await saveMethod(shop.services, { userId, method: 'pm_card_visa', setDefault: false })
  return userId
}

async function methodIsSaved(shop: Shop, userId: number): Promise<boolean> {
  const saved = await methodsOf(shop, userId)
  const [known] = await shop.bank.customers()
  expect(known?.methods ?? []).toEqual(saved)
  return saved.length > 0
}

async function customerIsKnown(shop: Shop): Promise<boolean> {
  const rows = await shop.context.db.kysely.selectFrom('processor_customers').select('ref').execute()
  const known = await shop.bank.customers()
  expect(known.map(({ id }) => id)).toEqual(rows.flatMap(({ ref }) => ref ?? []))
  return known.length > 0
}

/** To add a kind: one more entry. */
export const kinds: readonly KindCase[] = [
  {
    name: 'a payment',
    kind: 'payment',
    call: 'createIntent',
    canBeRefused: true,
    prepare: async (shop) => (await shop.cart(await shop.customer(), { 1: 2 })).id,
    async act(shop, orderId, isRefused) {
      const { user_id: userId } = await shop.order(orderId)
      const { services } = shop
      return pay(services, { userId, orderId, method: isRefused ? 'pm_card_chargeDeclined' : 'pm_card_visa' })
    },
    async result(shop, orderId) {
      const taken = (await shop.bank.intents()).filter(({ status }) => status === 'succeeded')
      const isPaid = (await shop.order(orderId)).processing_status === S.QUEUED
      expect(taken.reduce((sum, { amount, refunded }) => sum + amount - refunded, 0)).toBe(isPaid ? 541 : 0)
      expect(await shop.product(1)).toEqual({ quantity: 5, reserved: isPaid ? 2 : 0 })
      expect(await shop.outbox()).toHaveLength(isPaid ? 1 : 0)
      return resultOf(isPaid)
    },
    // The customer got 503: the order must not be completed later without the customer.
    afterLostAnswer: 'not done',
    afterLostRequest: 'not done',
  },
  {
    name: 'a deposit',
    kind: 'deposit',
    call: 'createIntent',
    canBeRefused: true,
    prepare: customer,
    act: ({ services }, userId, isRefused) =>
      deposit(services, {
        userId,
        amountCents: 2500,
        method: isRefused ? 'pm_card_chargeDeclined' : 'pm_card_visa',
      }),
    async result(shop, userId) {
      const taken = (await shop.bank.intents()).filter(({ status }) => status === 'succeeded')
      const balance = await balanceOf(shop, userId)
      expect(balance).toBe(taken.reduce((sum, { amount }) => sum + amount, 0))
      await ledgerAddsUp(shop.context.db.kysely)
      return resultOf(balance > 0)
    },
    // The money is in the customer's wallet.
    afterLostAnswer: 'done',
    afterLostRequest: 'not done',
  },
  {
    name: 'a refund',
    kind: 'refund',
    call: 'createRefund',
    canBeRefused: true,
    async prepare(shop, isRefused) {
      const { id } = await shop.paidOrder({ 1: 2 }, isRefused ? shop.bank.unrefundable : 'pm_card_visa')
      const lines = droppedLines(await shop.items(id))
      await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
      await shop.report({ kind: 'order.completed', order_id: id })
      return id
    },
    act: ({ services }, orderId) =>
      refundOrder(services, { orderId, mayTouch: () => Promise.resolve(true), amount: 100, actor: 'owner' }),
    async result(shop, orderId) {
      const back = (await shop.refunds(orderId))
        .filter(({ status }) => status === 'succeeded')
        .reduce((sum, { amount }) => sum + amount, 0)
      expect(back).toBe((await shop.bank.intents()).reduce((sum, { refunded }) => sum + refunded, 0))
      expect((await shop.order(orderId)).payment_status).toBe(back > 0 ? 'partially_refunded' : 'completed')
      expect([0, 100]).toContain(back)
      return resultOf(back > 0)
    },
    afterLostAnswer: 'done',
    afterLostRequest: 'done',
  },
  {
    name: 'a saved method',
    kind: 'method',
    call: 'attachMethod',
    canBeRefused: true,
    prepare: customer,
    act: ({ services }, userId, isRefused) =>
      saveMethod(services, {
        userId,
        method: isRefused ? 'pm_card_chargeDeclined' : 'pm_card_visa',
        setDefault: false,
      }),
    result: async (shop, userId) => resultOf(await methodIsSaved(shop, userId)),
    afterLostAnswer: 'done',
    afterLostRequest: 'done',
  },
  {
    name: 'the removal of a saved method',
    kind: 'method',
    call: 'detachMethod',
    canBeRefused: false,
    prepare: withMethod,
    async act(shop, userId) {
      const [method] = await methodsOf(shop, userId)
      return removeMethod(shop.services, { userId, method: method! })
    },
    result: async (shop, userId) => resultOf(!(await methodIsSaved(shop, userId))),
    afterLostAnswer: 'done',
    afterLostRequest: 'done',
  },
  {
    name: 'a customer at the processor',
    kind: 'customer',
    call: 'createCustomer',
    canBeRefused: false,
    prepare: customer,
    act: ({ services }, userId) => createSetupIntent(services, userId, 'key'),
    result: async (shop) => resultOf(await customerIsKnown(shop)),
    afterLostAnswer: 'done',
    afterLostRequest: 'done',
  },
  {
    name: 'the removal of a customer at the processor',
    kind: 'customer',
    call: 'removeCustomer',
    canBeRefused: false,
    prepare: withMethod,
    async act({ services }, userId) {
      const { context } = services
      const forgotten = await context.db.transact((tx) => forgetCustomers(tx, context, userId))
      await removeCustomers(services, forgotten)
    },
    result: async (shop) => resultOf(!(await customerIsKnown(shop))),
    afterLostAnswer: 'done',
    afterLostRequest: 'done',
  },
]
