import type { Mutant, Patch } from './mutants.ts'

const mutant = (invariant: Mutant['invariant'], name: string, ...patches: Patch[]): Mutant => ({
  invariant,
  name,
  patches,
})

const patch = (file: string, find: string, replace: string): Patch => ({ file, find, replace })

/**
 * Safeguards that the swarm must prove: without one of them it must fail. Each invariant has at least two.
 */
export const mutants: readonly Mutant[] = [
  mutant(
    'I1',
    'retry of an unknown operation',
    patch(
      'edge/core/operations/reconciliation.ts',
      "failed: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),",
      "failed: ({ drops }) => (drops > 0 ? 'done' : 'nothing'),",
    ),
    patch(
      'edge/core/operations/reconciliation.ts',
      "interrupted: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),",
      "interrupted: ({ drops }) => (drops > 0 ? 'done' : 'nothing'),",
    ),
  ),
  mutant(
    'I1',
    'intent journaled after the write',
    patch(
      'edge/core/operations/intend.ts',
      'store.afterCommit(() => send(context, request))',
      'send(context, request)',
    ),
  ),
  mutant(
    'I2',
    'no session fence',
    patch('edge/sync/inbound.ts', "if (command.session !== session) return 'stale_session'", ''),
  ),
  mutant(
    'I2',
    'commands without an expiry',
    patch(
      'edge/sync/inbound.ts',
      "return monotonicMs > command.expires_monotonic ? 'expired' : 'pass'",
      "return 'pass'",
    ),
  ),
  mutant(
    'I3',
    'no refund of undelivered units',
    patch(
      'cloud/commerce/refunds/undelivered.ts',
      "await refundUndelivered(tx, context, order, cause === 'hub_failed' ? 'failed' : 'timed_out')",
      '',
    ),
  ),
  mutant(
    'I3',
    'a late payment is not refunded',
    patch('cloud/commerce/payments/payment.ts', 'await refundLate(tx, context, order, payment)', ''),
  ),
  mutant(
    'I3',
    'a bin with left units is given to the next order',
    patch(
      'edge/core/bins/bin.ts',
      'isAvailable(bin) && bin.provenEmptyInMs === 0',
      'isAvailable({ ...bin, occupied: false })',
    ),
    patch(
      'edge/core/bins/bin.ts',
      "if (bin.door !== 'closed' || bin.emptyForMs === undefined) return wait()\n  if (bin.filled > 0 && !bin.opened) return wait()\n  const leftMs = emptyDebounceMs - bin.emptyForMs\n",
      "if (bin.door !== 'closed') return wait()\n  const leftMs = 0 * emptyDebounceMs\n",
    ),
  ),
  mutant(
    'I4',
    'receiver without deduplication',
    patch('protocol/stream/receiver.ts', "if (last <= cursor) return { kind: 'duplicate' }", ''),
    patch('protocol/stream/receiver.ts', 'skip: cursor + 1 - batch.first,', 'skip: 0,'),
    // The table behind it books each cause once.
    patch(
      'cloud/platform/store/tables/catalogue.ts',
      ".unique('hub_id', 'kind', 'cause_id', 'cabinet', 'shelf', 'row')",
      '',
    ),
  ),
  mutant(
    'I4',
    'deletion on PUBACK',
    patch(
      'edge/sync/stream-sender.ts',
      "    checkpoint('sync.after-send')\n",
      "    checkpoint('sync.after-send')\n    outbox.forget(stream, batch.last)\n",
    ),
  ),
  mutant(
    'I4',
    'histories with equal numbers are not distinguished',
    patch('protocol/stream/receiver.ts', 'theirs !== undefined && theirs !== state.tag', 'theirs === -1'),
    // Acknowledgements and hellos compare them as well.
    patch(
      'protocol/stream/sender.ts',
      'position.cursor < sender.base || tagAt(position.cursor) === position.tag',
      'true',
    ),
    patch('cloud/gateway/hello.ts', 'cursor > base || tag === baseTag', 'true'),
  ),
  mutant(
    'I5',
    'a double drop is booked as one',
    patch(
      'edge/core/stock.ts',
      "kind: 'dropped', delta: -units, causeId",
      "kind: 'dropped', delta: -1, causeId",
    ),
  ),
  mutant(
    'I5',
    'a cancelled order keeps its reservation',
    patch(
      'cloud/commerce/refunds/undelivered.ts',
      '  await releaseRedemptions(tx, order.id)\n  await releaseReservations(tx, order.id)\n',
      '  await releaseRedemptions(tx, order.id)\n',
    ),
  ),
  mutant(
    'I6',
    'refunds without a key',
    patch(
      'cloud/commerce/refunds/execute-refund.ts',
      'idempotencyKey: keyOf(operation),',
      'idempotencyKey: `${keyOf(operation)}:${context.runtime.clock.now()}`,',
    ),
    // An event that arrives before the next attempt names the refund too, and would hide the missing key.
    patch(
      'cloud/commerce/payments/webhook.ts',
      'await refunds.applyEvent(tx, context, operation, answer)',
      'if (operation.processor_ref !== null) await refunds.applyEvent(tx, context, operation, answer)',
    ),
  ),
  mutant(
    'I6',
    'payments are named only by their number',
    patch('cloud/commerce/processors/processor.ts', '`${id}.${created_at}`', '`${id}.${0 * created_at}`'),
  ),
  mutant(
    'I6',
    'a deposit is credited by each of its events',
    patch(
      'cloud/commerce/ledger/deposit.ts',
      "if (state === 'succeeded') await post",
      "if (state === 'processing' || state === 'succeeded') await post",
    ),
  ),
  mutant(
    'I6',
    'points stay after a refund',
    patch(
      'cloud/commerce/ledger/points.ts',
      'if (points !== 0) await addEntry',
      'if (points > 0) await addEntry',
    ),
  ),
  mutant(
    'I7',
    'motors run until the host stops them',
    patch(
      'simulator/firmware/operation-memory.ts',
      'clock.after(command.max, () => {',
      'clock.after(1e12, () => {',
    ),
  ),
  mutant(
    'I7',
    'a lock that was opened stays open',
    patch(
      'edge/hardware/doors.ts',
      'clock.after(Math.min(forMs, settings.maxUnlockMs), () => {',
      'clock.after(1e12, () => {',
    ),
  ),
  mutant(
    'I8',
    'a gap is accepted',
    patch('protocol/stream/receiver.ts', "if (batch.first > cursor + 1) return { kind: 'gap' }", ''),
  ),
  mutant(
    'I8',
    'a bad entry rolls back its batch',
    patch(
      'edge/journal/inbox.ts',
      'if (isMachineFault(error)) throw error',
      'if (error instanceof Error) throw error',
    ),
  ),
  mutant(
    'I9',
    'overdue orders are not processed',
    patch(
      'cloud/commerce/fulfilment/overdue.ts',
      "'order.overdue': { run: ({ subject }) => endOverdue(context, Number(subject), listening) },",
      "'order.overdue': { run: ({ subject }) => endOverdue(context, -Number(subject), listening) },",
    ),
  ),
  mutant(
    'I11',
    'the cloud ignores reports of blocked rows',
    patch(
      'cloud/commerce/fulfilment/apply-hub-entry.ts',
      'return applyShelfState(tx, hubId, state)',
      "return state.of === 'row' ? undefined : applyShelfState(tx, hubId, state)",
    ),
  ),
  mutant(
    'I11',
    'a hub does not report blocked rows',
    patch(
      'edge/core/states.ts',
      "compare(rowSubject(location), { of: 'row', location, blocked: why.slice(0, 32) })",
      'void [location, why]',
    ),
  ),
  mutant(
    'I12',
    'a hub is not informed of a refunded line',
    patch('edge/core/wanted-units.ts', "for (const unit of surplus) orders.setUnit(unit, 'short', null)", ''),
  ),
  mutant(
    'I13',
    'integrators receive no status changes',
    patch('cloud/commerce/orders/move-order.ts', 'publishMove(tx, context, order)', 'void [publishMove]'),
  ),
  mutant(
    'I13',
    'a refund is published when it is requested and when it is done',
    patch(
      'cloud/commerce/refunds/refunds.ts',
      '  await refreshRefunds(tx, context, order)\n  const pending',
      '  for (const row of rows) await publishRefund(tx, context, order, row)\n  await refreshRefunds(tx, context, order)\n  const pending',
    ),
  ),
  mutant(
    'I14',
    'a hub reports only the ends of alarms',
    patch(
      'edge/core/ledger.ts',
      "'alarm over')\n  ledger.report(",
      "'alarm over')\n  if (!raised) ledger.report(",
    ),
  ),
  mutant(
    'I14',
    'people are not notified of the end of an alarm',
    patch(
      'cloud/operations/alarms/hub-alarms.ts',
      'if (!raised) await clearAlarm',
      'if (!raised && hubId < 0) await clearAlarm',
    ),
  ),
  mutant(
    'I9',
    'an unpaid order never releases its stock',
    patch(
      'cloud/commerce/payments/pay.ts',
      'give_up_at: holdUntil(context, payment.processor, heldSince),',
      'give_up_at: holdUntil(context, payment.processor, heldSince) + 1e12,',
    ),
  ),
  mutant(
    'I15',
    'the age of a reading is ignored',
    patch(
      'edge/core/fridges.ts',
      '  const ms = Math.min(validUntil, reliableUntil) - now\n',
      '  const ms = Math.max(validUntil, reliableUntil, now + 1000) - now\n',
    ),
  ),
  mutant(
    'I15',
    'one cold reading ends a warm spell',
    patch(
      'edge/core/thermometer.ts',
      "return run.count >= coldReadings && last.at - run.since >= coldMs ? 'cold' : undefined",
      "return run.count >= Math.min(1, coldReadings, coldMs) ? 'cold' : undefined",
    ),
  ),
  mutant(
    'I15',
    'missing evidence counts as cold',
    patch(
      'edge/core/fridges.ts',
      '  if (proof === undefined && !isUnread && !wasUnproven && unprovenForMs < proofMs)\n',
      "  if (proof !== 'warm' && !wasUnproven)\n",
    ),
    patch(
      'edge/core/fridges.ts',
      "return { kind: 'cold', isProven: false, ms: proofMs - unprovenForMs }",
      "return { kind: 'cold', isProven: false, ms: Math.max(1000, proofMs - unprovenForMs) }",
    ),
  ),
  mutant(
    'I10',
    'the lease of a dead process never ends',
    patch(
      'cloud/platform/work/queue.ts',
      "eb.or([eb('leased_until', 'is', null), eb('leased_until', '<=', now)])",
      "eb('leased_until', 'is', null)",
    ),
  ),
]

/**
 * Seeds that are known to fail, by the mutant's name; they run first. After a change of the world or the
 * system, `npm run mutants` finds and prints another seed.
 */
export const knownSeeds: Readonly<Record<string, number>> = {
  'retry of an unknown operation': 5,
  'intent journaled after the write': 2,
  'no session fence': 11,
  'commands without an expiry': 23,
  'no refund of undelivered units': 1,
  'a late payment is not refunded': 33,
  'a bin with left units is given to the next order': 2,
  'receiver without deduplication': 4,
  'deletion on PUBACK': 3,
  'histories with equal numbers are not distinguished': 113,
  'a double drop is booked as one': 72,
  'a cancelled order keeps its reservation': 4,
  'refunds without a key': 72,
  'payments are named only by their number': 21,
  'a deposit is credited by each of its events': 2,
  'points stay after a refund': 2,
  'motors run until the host stops them': 19,
  'a lock that was opened stays open': 3,
  'a gap is accepted': 4,
  'a bad entry rolls back its batch': 3,
  'overdue orders are not processed': 7,
  'the cloud ignores reports of blocked rows': 4,
  'a hub does not report blocked rows': 3,
  'a hub is not informed of a refunded line': 21,
  'integrators receive no status changes': 1,
  'a refund is published when it is requested and when it is done': 2,
  'a hub reports only the ends of alarms': 2,
  'people are not notified of the end of an alarm': 2,
  'an unpaid order never releases its stock': 4,
  'the age of a reading is ignored': 54,
  'one cold reading ends a warm spell': 117,
  'missing evidence counts as cold': 29,
  'the lease of a dead process never ends': 11,
}
