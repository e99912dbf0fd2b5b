import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { deposit } from '../../../../cloud/commerce/ledger/deposit.ts'
import { onEachProcessor, onStripeShop } from '../../support/each-processor.ts'
import { droppedLines, type Shop } from '../../../world/shop.ts'
import { balanceOf, ledgerAddsUp } from '../../support/wallets.ts'
import { sendEvent } from '../../support/webhooks.ts'

/** A status of a movement in the processor's terms, and in ours. */
type Word = 'pending' | 'gone' | 'back'

interface Move {
  kind: 'refund' | 'dispute'
  ref: string
  amount: number
}

let events = 0

/** An event in which the processor reports a movement. */
async function report(shop: Shop, { kind, ref, amount }: Move, word: string, intent: string) {
  const isStripe = shop.bank.name === 'stripe'
  const words: Record<string, [string, string]> =
    kind === 'refund'
      ? {
          pending: ['pending', 'pending'],
          gone: ['succeeded', 'succeeded'],
          back: ['failed', 'failed'],
        }
      : {
          pending: ['inquiry', 'warning_needs_response'],
          gone: ['succeeded', 'needs_response'],
          back: ['failed', 'won'],
        }
  const status = words[word]?.[isStripe ? 1 : 0] ?? word
  const type = kind === 'refund' ? 'refund.updated' : isStripe ? 'charge.dispute.updated' : 'dispute.updated'
  events += 1
  await sendEvent(shop, {
    id: `evt_${events}`,
    type,
    object: { id: ref, status, amount, payment_intent: intent },
  })
}

async function completedOrder(shop: Shop): Promise<{ id: number; intent: string }> {
  const { id } = await shop.paidOrder({ 1: 1 })
  const lines = droppedLines(await shop.items(id))
  await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
  await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
  await shop.report({ kind: 'order.collecting', order_id: id })
  await shop.report({ kind: 'order.completed', order_id: id })
  return { id, intent: (await shop.payments(id))[0]!.processor_ref! }
}

const openDisputes = async (shop: Shop) =>
  shop.context.db.kysely
    .selectFrom('alarms')
    .select(['subject', 'message'])
    .where('kind', '=', 'payment_disputed')
    .where('cleared_at', 'is', null)
    .execute()

const moves: readonly Move[] = [
  { kind: 'dispute', ref: 'dp_1', amount: 171 },
  { kind: 'refund', ref: 're_1', amount: 60 },
  { kind: 'refund', ref: 're_2', amount: 40 },
]
const word = fc.constantFrom<Word>('pending', 'gone', 'back')
/** The processor's events of each movement, each once or more, in any order. */
const said = fc.tuple(...moves.map(() => fc.array(word, { maxLength: 4 }))).chain((lives) =>
  fc.shuffledSubarray(
    lives.flatMap((words, index) => words.map((one) => ({ move: moves[index]!, word: one }))),
    { minLength: lives.flat().length },
  ),
)

/** Cents that are gone in the end. */
const gone = (reports: readonly { move: Move; word: Word }[]): number =>
  moves.reduce((sum, move) => {
    const words = reports.filter((one) => one.move === move).map((one) => one.word)
    return sum + (words.includes('gone') && !words.includes('back') ? move.amount : 0)
  }, 0)

onEachProcessor('the order of money events', (open) => {
  test('an order’s payment status does not depend on the sequence and the number of its events', async () => {
    const shop = await open({ products: [{ price: 250, quantity: 500 }] })
    await fc.assert(
      fc.asyncProperty(said, async (reports) => {
        const { id, intent } = await completedOrder(shop)
        const own = ({ ref, ...rest }: Move) => ({ ...rest, ref: `${ref}_${id}` })
        for (const { move, word: one } of reports) await report(shop, own(move), one, intent)
        const cents = gone(reports)
        const order = await shop.order(id)
        expect(order.payment_status).toBe(
          cents === 0 ? 'completed' : cents < 271 ? 'partially_refunded' : 'refunded',
        )
        const refunds = await shop.refunds(id)
        expect(
          refunds.reduce((sum, { status, amount }) => sum + (status === 'succeeded' ? amount : 0), 0),
        ).toBe(cents)
        const words = reports.filter(({ move }) => move.kind === 'dispute').map((one) => one.word)
        const isLost = words.includes('gone') && !words.includes('back')
        expect((await openDisputes(shop)).filter(({ subject }) => subject === `order ${id}`)).toHaveLength(
          isLost ? 1 : 0,
        )
      }),
      { numRuns: 25 },
    )
  })

  test('a wallet’s balance and debt do not depend on the sequence and the number of its deposit’s events', async () => {
    const shop = await open()
    await fc.assert(
      fc.asyncProperty(said, fc.nat({ max: 300 }), async (reports, at) => {
        const userId = await shop.customer()
        const method = 'pm_card_visa'
        const { payment_intent_id: intent } = await deposit(shop.services, {
          userId,
          amountCents: 300,
          method,
        })
        const own = ({ ref, ...rest }: Move) => ({ ...rest, ref: `${ref}_w${userId}` })
        const paid = { id: `evt_paid_${userId}`, type: 'payment_intent.succeeded', object: { id: intent } }
        const place = at % (reports.length + 1)
        for (const [index, { move, word: one }] of reports.entries()) {
          if (index === place) await sendEvent(shop, paid)
          await report(shop, own(move), one, intent)
        }
        if (place === reports.length) await sendEvent(shop, paid)
        // A repetition under another id.
        await sendEvent(shop, { ...paid, id: `${paid.id}_again` })
        expect(await balanceOf(shop, userId)).toBe(300 - gone(reports))
      }),
      { numRuns: 25 },
    )
    await ledgerAddsUp(shop.context.db.kysely)
  })

  test('a dispute that is lost and won, in any sequence of its events, leaves the order paid and raises no alarm', async () => {
    const shop = await open()
    const { id, intent } = await completedOrder(shop)
    const dispute: Move = { kind: 'dispute', ref: 'dp_late', amount: 271 }
    await report(shop, dispute, 'back', intent)
    await report(shop, dispute, 'gone', intent)
    expect((await shop.order(id)).payment_status).toBe('completed')
    expect(await openDisputes(shop)).toEqual([])
  })

  test('an unknown status of a dispute moves no money, and raises the alarm until the dispute is won', async () => {
    const shop = await open()
    const { id, intent } = await completedOrder(shop)
    const dispute: Move = { kind: 'dispute', ref: 'dp_new', amount: 271 }
    await report(shop, dispute, 'arbitrated_by_moon', intent)
    expect((await shop.order(id)).payment_status).toBe('completed')
    expect(await openDisputes(shop)).toEqual([
      { subject: `order ${id}`, message: expect.stringContaining('arbitrated_by_moon') as string },
    ])
    await report(shop, dispute, 'back', intent)
    await report(shop, dispute, 'arbitrated_by_moon', intent)
    expect(await openDisputes(shop)).toEqual([])
  })

  test('an unknown status of a disputed deposit raises the alarm for every owner, and does not change the wallet', async () => {
    const shop = await open()
    const userId = await shop.customer()
    const wanted = { userId, amountCents: 300, method: 'pm_card_visa' }
    const { payment_intent_id: intent, transaction_id } = await deposit(shop.services, wanted)
    await sendEvent(shop, { id: 'evt_paid', type: 'payment_intent.succeeded', object: { id: intent } })
    await report(shop, { kind: 'dispute', ref: 'dp_new', amount: 300 }, 'sealed', intent)
    expect(await balanceOf(shop, userId)).toBe(300)
    expect(await openDisputes(shop)).toMatchObject([{ subject: `deposit ${transaction_id}` }])
  })
})

onStripeShop('statuses of Stripe', (open) => {
  test.for([
    'needs_response',
    'under_review',
    'lost',
    'prevented',
    'appeal_needs_response',
    'appeal_under_review',
    'appeal_of_the_future',
  ])('a dispute that is "%s" counts as lost until it is won', async (status) => {
    const shop = await open()
    const { id, intent } = await completedOrder(shop)
    const dispute: Move = { kind: 'dispute', ref: 'dp_1', amount: 271 }
    await report(shop, dispute, status, intent)
    expect((await shop.order(id)).payment_status).toBe('refunded')
    expect(await openDisputes(shop)).toHaveLength(1)
    await report(shop, dispute, 'won', intent)
    expect((await shop.order(id)).payment_status).toBe('completed')
    expect(await openDisputes(shop)).toEqual([])
  })

  test.for(['warning_needs_response', 'warning_under_review', 'warning_closed'])(
    'an inquiry that is "%s" moves no money and raises no alarm',
    async (status) => {
      const shop = await open()
      const { id, intent } = await completedOrder(shop)
      await report(shop, { kind: 'dispute', ref: 'dp_1', amount: 271 }, status, intent)
      expect((await shop.order(id)).payment_status).toBe('completed')
      expect(await openDisputes(shop)).toEqual([])
    },
  )

  test('optional fields of another type do not hide an event', async () => {
    const shop = await open()
    const { id, intent } = await completedOrder(shop)
    await sendEvent(shop, {
      id: 'evt_odd',
      type: 'charge.dispute.created',
      object: {
        id: 'dp_odd',
        status: 'needs_response',
        amount: 271,
        payment_intent: { id: intent },
        reason: 7,
        failure_reason: {},
        client_secret: null,
      },
    })
    expect((await shop.order(id)).payment_status).toBe('refunded')
  })
})
