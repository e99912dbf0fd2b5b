import { DAY_MS } from '../../protocol/model/times.ts'
import type { Hello, Welcome } from '../../protocol/mqtt/session.ts'
import type { Tables } from '../platform/store/schema.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import type { ExpressionBuilder } from 'kysely'

/**
 * A hub that was retired with open orders or undelivered entries keeps its login until its streams are drained. That is the
 * case when it has committed all entries of the cloud, no order holds a bin, and all its reports are applied. The login ends
 * at the latest `HUB_DRAIN_MS` after the retirement. A hub that has moved to another cell keeps it until it has left.
 */

/** Whether a hub may communicate with the cloud: it is in service or drains, and its certificate was not revoked. */
export const maySpeak = (eb: ExpressionBuilder<Tables, 'hubs'>, now: number) =>
  eb.and([
    eb('hubs.revoked_at', 'is', null),
    eb.or([eb('hubs.retired_at', 'is', null), eb('hubs.draining_until', '>', now)]),
  ])

/** Whether a board may still have secrets that it must erase: its hub is retired, or the board is revoked. */
export const isToErase = (eb: ExpressionBuilder<Tables, 'hubs'>) =>
  eb.and([
    eb('hubs.secrets_erased_at', 'is', null),
    eb.or([eb('hubs.revoked_at', 'is not', null), eb('hubs.retired_at', 'is not', null)]),
  ])

/** A hub that has moved drains for this long: it leaves whenever it comes back, and `noteErased` ends its login. */
export const UNTIL_IT_LEFT_MS = 100 * 365 * DAY_MS

/** Draining hubs that have committed everything. Their next hellos show whether their ledgers are applied. */
export async function hubsToAsk(q: Queries, now: number): Promise<number[]> {
  const rows = await q
    .selectFrom('hubs')
    .innerJoin('hub_outboxes', 'hub_outboxes.hub_id', 'hubs.id')
    .select('hubs.id')
    .where('hubs.draining_until', '>', now)
    .whereRef('hub_outboxes.base', '=', 'hub_outboxes.last')
    .execute()
  return rows.map(({ id }) => id)
}

/** Begins to drain a retired hub. A hub that never sent a hello has nothing to deliver. */
export async function startDraining(tx: Tx, hubId: number, until: number): Promise<void> {
  await tx.q
    .updateTable('hubs')
    .set({ draining_until: until })
    .where('id', '=', hubId)
    .where('id', 'in', tx.q.selectFrom('hub_sessions').select('hub_id').where('hub_id', '=', hubId))
    .execute()
}

/**
 * Ends the logins of hubs if their hellos show that no entry is under way in either direction. Returns those that must first leave
 * for another cell: their logins end when they have.
 */
export async function endDrained(
  tx: Tx,
  said: readonly { hubId: number; hello: Hello; welcome: Welcome }[],
): Promise<number[]> {
  const delivered = said.filter(isDelivered).map(({ hubId }) => hubId)
  if (delivered.length === 0) return []
  const drained = await tx.q
    .selectFrom('hubs')
    .leftJoin('hub_moves', 'hub_moves.hub_id', 'hubs.id')
    .select(['hubs.id', 'hub_moves.moved_at'])
    .where('hubs.id', 'in', delivered)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('hub_bins')
            .select('bin')
            .whereRef('hub_bins.hub_id', '=', 'hubs.id')
            .where('state', '=', 'held'),
        ),
      ),
    )
    .execute()
  const ended = drained.filter(({ moved_at }) => moved_at === null).map(({ id }) => id)
  if (ended.length > 0)
    await tx.q.updateTable('hubs').set({ draining_until: null }).where('id', 'in', ended).execute()
  return drained.filter(({ moved_at }) => moved_at !== null).map(({ id }) => id)
}

const isDelivered = ({ hello, welcome: { ledger, outbox } }: { hello: Hello; welcome: Welcome }): boolean =>
  !ledger.restart &&
  ledger.cursor === hello.ledger.last &&
  hello.inbox.epoch === outbox.epoch &&
  hello.inbox.cursor === outbox.last &&
  outbox.base === outbox.last
