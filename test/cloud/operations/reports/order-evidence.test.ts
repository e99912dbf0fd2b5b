import { expect, test } from 'vitest'
import type { OrderEvidence } from '../../../../protocol/contract/owner-orders.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService, type Service } from '../../../world/service.ts'

onEachDatabase('the evidence of an order', (open) => {
  const read = async ({ owner }: Service, id: number): Promise<OrderEvidence> =>
    (await owner('GET', `orders/${id}`)).json as OrderEvidence

  /** An order of 2 units of product 1; `dropped` of them fall into bin 1. */
  async function ready(service: Service, dropped: number): Promise<number> {
    const { shop } = service
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    const [item] = await shop.items(order_id)
    const line = { line_id: item!.id, dropped, doubtful: 0, bins: [1] }
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines: [line] })
    await service.cloud.work.drain()
    return order_id
  }

  test('an order that is paid and not dispensed yet owes its price', async () => {
    const service = await openService(open)
    const { id } = await service.shop.paidOrder({ 1: 2 })
    const { paid, owed, summary, evidence } = await read(service, id)
    expect(paid).toBeGreaterThan(0)
    expect(owed).toBe(paid)
    expect(summary).toBe(`paid ${(paid / 100).toFixed(2)}, 0 dispensed, ${(paid / 100).toFixed(2)} owed`)
    expect(evidence.map(({ kind }) => kind)).toEqual(['paid'])
  })

  test('an order owes nothing if the sensor saw all units', async () => {
    const service = await openService(open)
    const { owed, summary, evidence } = await read(service, await ready(service, 2))
    expect([owed, summary]).toEqual([
      0,
      expect.stringMatching(/^paid [\d.]+, 2 dispensed, seen by the sensor, 0 owed$/) as string,
    ])
    expect(evidence.map(({ kind }) => kind)).toEqual(['paid', 'dispensed', 'dispensed', 'sensor', 'door'])
  })

  test('a unit that did not fall is refunded, and the evidence has both', async () => {
    const service = await openService(open)
    const { paid, refunded, owed, summary, evidence } = await read(service, await ready(service, 1))
    expect([owed, Math.abs(refunded * 2 - paid) <= 1]).toEqual([0, true])
    expect(summary).toMatch(/^paid [\d.]+, 1 dispensed, seen by the sensor, refunded [\d.]+, 0 owed$/)
    expect(evidence.at(-1)).toMatchObject({
      kind: 'refunded',
      text: expect.stringMatching(/units did not fall\.$/) as string,
    })
  })

  test('a refund that failed is in the evidence until a person has paid it in another way', async () => {
    const service = await openService(open)
    const { shop } = service
    const { id } = await shop.paidOrder({ 1: 2 }, 'pm_card_refundFail')
    await service.owner('POST', `orders/${id}/refund`, { amount: 100 })
    await shop.work.drain()
    const [refund] = await shop.refunds(id)
    const failed = { refund_id: refund!.id, amount: 100, failure_reason: 'lost_or_stolen_card' }
    const before = await read(service, id)
    expect([before.failed_refunds, before.refunded]).toEqual([[failed], 0])
    const body = { refund_ids: [refund!.id], amount: 100, reason: 'Cash' }
    await service.owner('POST', `orders/${id}/refunds/settle`, body)
    const { failed_refunds, refunded, evidence } = await read(service, id)
    expect([failed_refunds, refunded]).toEqual([[], 100])
    expect(evidence.filter(({ kind }) => kind === 'refunded').map(({ text }) => text)).toEqual([
      'The processor refused to refund: 1.00, by the owner.',
      'Refunded 1.00, by the owner, paid in another way.',
    ])
  })
})
