import { z } from 'zod'
import type { HubHealth } from '../../../protocol/mqtt/session.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { holdsWithin } from '../../../protocol/model/runtime.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { awaitDelivery, enqueue, type OutboxPlace } from '../../gateway/outbox.ts'
import { readHubConfig } from '../../commerce/fulfilment/hub-snapshot.ts'
import { closeCabinets } from '../../commerce/catalogue/layout.ts'
import type { Tx } from '../../platform/store/database.ts'

/** What an operator wants of a hub (contract §6): desired state, which reaches the hub when it can. */
export interface Configuration {
  acceptingOrders: boolean
  disabledBins: readonly number[]
  disabledFridges: readonly number[]
}

export interface ConfigurationRequest {
  hubId: number
  /** For the audit log. */
  actor: string
  action: string
  object: string
  change: (before: Configuration) => Configuration
  /** Whether the hub's own report shows the change. */
  isShown: (health: HubHealth, after: Configuration) => boolean
}

export interface Configured {
  after: Configuration
  /** The hub has it in force; otherwise it will have when it returns. */
  applied: boolean
}

/** How long a hub's report of a change that it has applied is waited for, so that whoever reads next sees it. */
const REPORT_MS = 1500

const Numbers = z.array(z.int())

/**
 * Changes the desired state of a hub and sends it, in one transaction; then waits for a hub that is there to have applied
 * it. Changes of one hub come one after the other: two toggles at once toggle twice.
 */
export async function configure(context: CloudContext, request: ConfigurationRequest): Promise<Configured> {
  const { db, runtime, settings } = context
  const { hubId, actor, action, object, isShown } = request
  const audited = { actor, action, hubId, object }
  const { place, after } = await db.transact(async (tx) => {
    const { after: changed, place: sent } = await setDesired(tx, context, request)
    await appendAudit(tx.q, runtime, { ...audited, result: 'accepted', detail: detailOf(changed) })
    return { place: sent, after: changed }
  })
  context.checkpoint('controls.configured')
  const readState = () => hubState(db.kysely, hubId, runtime.clock.now(), settings.onlineWithinMs)
  if (place === null || !(await readState()).connected) return { after, applied: false }
  if (!(await awaitDelivery(context, hubId, place, settings.commandTimeoutMs)))
    return { after, applied: false }
  await appendAudit(db.kysely, runtime, { ...audited, result: 'executed', detail: detailOf(after) })
  await holdsWithin(runtime.clock, REPORT_MS, async () => {
    const { health } = await readState()
    return health !== null && isShown(health, after)
  })
  return { after, applied: true }
}

/** Changes the desired state of a hub and sends it, in the caller's transaction. */
export async function setDesired(
  tx: Tx,
  context: CloudContext,
  { hubId, change: apply }: Pick<ConfigurationRequest, 'hubId' | 'change'>,
): Promise<{ after: Configuration; place: OutboxPlace | null }> {
  const after = await change(tx, hubId, apply)
  const config = await readHubConfig(tx, context, hubId)
  return { after, place: await enqueue(tx, hubId, { kind: 'config', config }) }
}

async function change(tx: Tx, hubId: number, apply: ConfigurationRequest['change']): Promise<Configuration> {
  const hub = await tx
    .forUpdate(
      tx.q
        .selectFrom('hubs')
        .select(['accepting_orders', 'disabled_bins', 'disabled_fridges'])
        .where('id', '=', hubId),
    )
    .executeTakeFirstOrThrow()
  const after = apply({
    acceptingOrders: hub.accepting_orders === 1,
    disabledBins: Numbers.parse(JSON.parse(hub.disabled_bins)),
    disabledFridges: Numbers.parse(JSON.parse(hub.disabled_fridges)),
  })
  await tx.q
    .updateTable('hubs')
    .set({
      accepting_orders: after.acceptingOrders ? 1 : 0,
      disabled_bins: JSON.stringify(after.disabledBins),
      disabled_fridges: JSON.stringify(after.disabledFridges),
    })
    .where('id', '=', hubId)
    .execute()
  await closeCabinets(tx, hubId, after.disabledFridges)
  return after
}

const detailOf = ({ acceptingOrders, disabledBins, disabledFridges }: Configuration) => ({
  accepting_orders: acceptingOrders,
  disabled_bins: disabledBins,
  disabled_fridges: disabledFridges,
})

/** The list with a number in it or without, in order. */
export const withNumber = (numbers: readonly number[], number: number, present: boolean): number[] =>
  [...numbers.filter((each) => each !== number), ...(present ? [number] : [])].toSorted((a, b) => a - b)
