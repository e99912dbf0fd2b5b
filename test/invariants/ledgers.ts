import { locationOf, unitsFallen } from './motion.ts'
import type { Evidence, Violation } from './evidence.ts'

/** I4: nothing reported is lost. The cloud has each entry of the hub's ledger once, and no entry waits. */
export function nothingReportedIsLost({ hub, cloud, lost = new Set() }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I4', text })
  if (hub.pending > 0) say(`${hub.pending} entries of the hub were never acknowledged`)
  if (cloud.outboxPending > 0) say(`${cloud.outboxPending} entries of the cloud were never acknowledged`)
  if (cloud.countsPending > 0) say(`${cloud.countsPending} counts of the cloud were never confirmed`)
  const { accepting_orders, disabled_bins, disabled_fridges } = hub.config ?? {}
  const held = JSON.stringify({ accepting_orders, disabled_bins, disabled_fridges })
  if (held !== JSON.stringify(cloud.wanted))
    say(`the hub serves with ${held}, the cloud wants ${JSON.stringify(cloud.wanted)}`)
  const mirrored = new Map<string, number>()
  for (const row of cloud.stockLedger) {
    const key = `${row.cause_id} ${row.cabinet}-${row.shelf}-${row.row}`
    mirrored.set(key, (mirrored.get(key) ?? 0) + row.delta)
  }
  for (const row of hub.ledger) {
    // Rows from the cloud's snapshot or planogram are not the hub's to report.
    if (row.kind === 'snapshot' || row.kind === 'moved') continue
    const key = `${row.cause_id} ${row.location}`
    const delta = mirrored.get(key)
    // The hub's snapshot replaces the entries that a restored cloud has lost.
    if (delta === undefined && lost.has(`stock ${key}`)) continue
    if (delta === undefined) say(`the cloud never heard of ${key} (${row.delta})`)
    else if (delta !== row.delta) say(`${key} is ${row.delta} at the hub and ${delta} at the cloud`)
  }
  for (const order of hub.orders) if (!order.finished) say(`the hub still works on order ${order.order_id}`)
  return violations
}

/**
 * I5: stock adds up at the hub and at the cloud, and equals the units on the shelf. Operations with unknown
 * outcome are the only exception, and each is listed until a person resolves it.
 */
export function stockAddsUp({ world, hub, cloud }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I5', text })
  const fallen = new Map<string, number>()
  for (const motion of world.motions) {
    const location = locationOf(motion)
    if (location !== undefined) fallen.set(location, (fallen.get(location) ?? 0) + unitsFallen(motion))
  }
  for (const shelf of world.shelves) {
    const expected = shelf.initial + shelf.restocked - (fallen.get(shelf.location) ?? 0)
    if (expected !== shelf.now)
      say(`shelf ${shelf.location} holds ${shelf.now} units, its log says ${expected}`)
    const stock = hub.stock.find((row) => row.location === shelf.location)
    if (stock === undefined) continue
    const summed = hub.ledger
      .filter((row) => row.location === shelf.location)
      .reduce((sum, row) => sum + row.delta, 0)
    if (summed !== stock.quantity)
      say(`hub stock of ${shelf.location} is ${stock.quantity}, its ledger sums to ${summed}`)
    const unsettled = hub.unsettled.filter((operation) => operation.location === shelf.location).length
    if (Math.abs(stock.quantity - shelf.now) > unsettled)
      say(
        `hub stock of ${shelf.location} is ${stock.quantity}, the shelf holds ${shelf.now}, ${unsettled} unsettled`,
      )
    const facing = cloud.facings.find((row) => `${row.cabinet}-${row.shelf}-${row.row}` === shelf.location)
    if (facing?.quantity !== stock.quantity)
      say(`stock of ${shelf.location} is ${stock.quantity} at the hub and ${facing?.quantity} at the cloud`)
  }
  for (const product of cloud.products) {
    const sum = cloud.facings
      .filter((facing) => facing.product_id === product.id)
      .reduce((total, facing) => total + facing.quantity, 0)
    if (sum !== product.quantity) say(`product ${product.id} counts ${product.quantity}, its facings ${sum}`)
    if (product.reserved !== 0) say(`product ${product.id} still has ${product.reserved} units reserved`)
  }
  return violations
}

/** The kind of the entries that a test plants and that no part can apply. */
export const PLANTED = 'planted'

/**
 * I8: every entry that could not be applied is in a dead-letter table. An entry that our parts wrote never
 * is.
 */
export function nothingBlocks({ hub, cloud, lost = new Set() }: Evidence): Violation[] {
  return [...hub.deadLetters, ...cloud.deadLetters]
    .map((letter) => JSON.stringify(letter))
    .filter((letter) => !letter.includes(PLANTED) && ![...lost].some((name) => letter.includes(name)))
    .map((letter) => ({
      invariant: 'I8' as const,
      text: `an entry of ours could not be applied: ${letter.slice(0, 300)}`,
    }))
}
