import type { CloudContext } from '../../platform/context.ts'
import { isolated } from '../../platform/work/background.ts'
import { done, type Outcome, type Work, type WorkKinds } from '../../platform/work/runner.ts'
import {
  processorBackoff,
  type ListedPayment,
  type MovesPage,
  type MovesRequest,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { comparePayment } from './orphaned-payments.ts'
import { findOperation } from '../money/operations.ts'
import { refundAnswer, refunds } from '../refunds/execute-refund.ts'
import { applyMove } from './processor-moves.ts'

type Kind = MovesRequest['kind'] | 'payment'
type Move = MovesPage['moves'][number]

const kinds: readonly Kind[] = ['payment', 'refund', 'dispute']
/** The pause between two pages of a comparison, in milliseconds. */
const PAUSE_MS = 50

/**
 * Compares the books with the processor's payments, refunds and disputes. Events report most of them sooner.
 * But an event may be lost for good (a receiver that was away for too long, an endpoint that was disabled).
 * And a restored database has lost payments that it knew before.
 */
export const checkWork = (services: MoneyServices): WorkKinds => ({
  'processor.check': {
    recurring: kinds,
    backoff: processorBackoff(services.context),
    run: (work) => checkPage(services, work),
  },
})

/**
 * Compares one page per run, newest moves first. It covers all moves since the last comparison started. It
 * also covers a period before that (`refundCheckMs`, `disputeCheckMs`), because their status may have
 * changed. Moves made during a comparison belong before the first page, and are left to the next comparison.
 */
async function checkPage(
  { context, processor }: MoneyServices,
  { subject, attempts }: Work,
): Promise<Outcome> {
  const kind = kinds.find((one) => one === subject)
  if (kind === undefined) return done
  const { db, runtime, settings } = context
  const key = { processor: processor.name, kind }
  const now = runtime.clock.now()
  const known = await db.kysely
    .selectFrom('processor_checks')
    .select(['checked_until', 'begun_at', 'after'])
    .where((eb) => eb.and(key))
    .executeTakeFirst()
  // If the processor no longer knows a page position (it is another account's), asking for it again would
  // never succeed.
  const current = known?.begun_at != null && attempts === 1 ? known : undefined
  const startedAt = current?.begun_at ?? now
  const since = Math.min(known?.checked_until ?? now, now) - againMs(kind, settings)
  const page = { since, after: current?.after ?? null, limit: settings.processorCheckBatch }
  const next = await comparePage({ context, processor }, kind, page)
  const place =
    next === null
      ? { checked_until: startedAt, begun_at: null, after: null }
      : { checked_until: known?.checked_until ?? now, begun_at: startedAt, after: next }
  await db.kysely
    .insertInto('processor_checks')
    .values({ ...key, ...place })
    .onConflict((conflict) => conflict.columns(['processor', 'kind']).doUpdateSet(place))
    .execute()
  return { next: runtime.clock.now() + (next === null ? settings.processorCheckMs : PAUSE_MS) }
}

/** Returns the position of the next page. */
async function comparePage(
  { context, processor }: MoneyServices,
  kind: Kind,
  page: Omit<MovesRequest, 'kind'>,
): Promise<string | null> {
  if (kind === 'payment') {
    const { payments, next } = await processor.listPayments(page)
    for (const payment of await withoutBooked(context, payments))
      await isolated(context, `payment ${payment.ref} of the processor`, () =>
        context.db.transact((tx) => comparePayment(tx, context, processor.name, payment)),
      )
    return next
  }
  const { moves, next } = await processor.listMoves({ kind, ...page })
  // A move that fails does not block the other moves.
  for (const move of await withNews(context, moves))
    await isolated(context, `${kind} ${move.ref} of the processor`, () => follow(context, kind, move))
  return next
}

function againMs(kind: Kind, settings: CloudContext['settings']): number {
  switch (kind) {
    case 'payment':
      return settings.paymentCheckMs
    case 'refund':
      return settings.refundCheckMs
    case 'dispute':
      return settings.disputeCheckMs
  }
}

/** Drops payments that the books and the processor both have as completed: most of them. */
async function withoutBooked(
  { db }: CloudContext,
  made: readonly ListedPayment[],
): Promise<readonly ListedPayment[]> {
  const refs = made.map(({ ref }) => ref)
  if (refs.length === 0) return []
  const completed = await db.kysely
    .selectFrom('money_operations')
    .select('processor_ref')
    .where('processor_ref', 'in', refs)
    .where('state', '=', 'succeeded')
    .execute()
  const booked = new Set(completed.map(({ processor_ref }) => processor_ref))
  return made.filter(({ ref }) => !booked.has(ref))
}

/** Drops moves with the same status in the books and at the processor: most of them. */
async function withNews({ db }: CloudContext, moves: readonly Move[]): Promise<Move[]> {
  const refs = moves.map(({ ref }) => ref)
  if (refs.length === 0) return []
  const known = await db.kysely
    .selectFrom('money_operations')
    .select(['processor_ref', 'state'])
    .where('processor_ref', 'in', refs)
    .execute()
  const states = new Map(known.map(({ processor_ref, state }) => [processor_ref, state]))
  return moves.filter(({ ref, status }) => {
    const state = states.get(ref)
    return state !== (status === 'pending' ? 'processing' : status)
  })
}

const follow = (context: CloudContext, kind: MovesRequest['kind'], move: Move): Promise<void> =>
  context.db.transact(async (tx) => {
    const { ref, identity, status, failureReason, intent, amount } = move
    const named = { kind: 'refund' as const, name: identity }
    const own = kind === 'refund' ? await findOperation(tx.q, ref, named) : undefined
    if (own && status !== 'unknown')
      await refunds.applyEvent(tx, context, own, refundAnswer({ ...move, status }))
    else await applyMove(tx, context, { ref, kind, intent, amount, status, reason: failureReason })
  })
