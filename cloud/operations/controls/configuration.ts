import { z } from 'zod'
import { holdsWithin } from '../../../protocol/model/runtime.ts'
import type { HubHealth } from '../../../protocol/model/hub-health.ts'
import { checkBins } from '../../commerce/orders/bin-room.ts'
import { blockDisabled } from '../../commerce/catalogue/units.ts'
import { readConfirmed, readHubConfig } from '../../commerce/fulfilment/hub-snapshot.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { publishHubChange } from '../hubs/hub-events.ts'
import { awaitDelivery, enqueue, type OutboxPlace } from '../../gateway/outbox.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { type BinRequest, type ControlServices, type FridgeRequest, ok, requireBin } from './control.ts'
import { requireFridge } from '../hubs/require-fridge.ts'

/** O §4.6: commands that change the desired state. 200 if the hub has applied it, 202 if it will. */
export function configurationHandlers({
  context,
}: ControlServices): Handlers<
  | 'owner.controls.enable_bin'
  | 'owner.controls.disable_bin'
  | 'owner.controls.toggle_bin'
  | 'owner.controls.enable_fridge'
  | 'owner.controls.disable_fridge'
  | 'owner.controls.stop_orders'
  | 'owner.controls.resume_orders'
> {
  async function setBin(
    { query, credential }: BinRequest,
    action: string,
    enabledAfter: (was: boolean) => boolean,
  ) {
    const { hub: hubId, bin } = query
    await requireBin(context, query)
    const isEnabled = ({ disabledBins }: Configuration): boolean => !disabledBins.includes(bin)
    const { after, applied } = await configure(context, {
      hubId,
      actor: credential.actor,
      action,
      object: `bin-${bin}`,
      change: (before) => ({
        ...before,
        disabledBins: withNumber(before.disabledBins, bin, !enabledAfter(isEnabled(before))),
      }),
      isShown: (health, wanted) =>
        health.bins.every(({ bin_number, enabled }) => bin_number !== bin || enabled === isEnabled(wanted)),
    })
    return ok(applied ? 200 : 202, { enabled: isEnabled(after) })
  }

  async function setFridge({ query, credential }: FridgeRequest, action: string, enabled: boolean) {
    const { hub: hubId, fridge } = query
    await requireFridge(context, query)
    const { applied } = await configure(context, {
      hubId,
      actor: credential.actor,
      action,
      object: `fridge-${fridge}`,
      change: (before) => ({
        ...before,
        disabledFridges: withNumber(before.disabledFridges, fridge, !enabled),
      }),
      // A person who enables a fridge after a shut-off has checked its contents.
      ...(enabled && { confirms: fridge }),
      isShown: (health) =>
        health.fridges.every(
          (each) => each.fridge_number !== fridge || (each.enabled === enabled && !(enabled && each.shutoff)),
        ),
    })
    return ok(applied ? 200 : 202, { enabled })
  }

  async function setIntake(
    { query, credential }: { query: { hub: number }; credential: { actor: string } },
    action: string,
    acceptingOrders: boolean,
  ) {
    const { applied } = await configure(context, {
      hubId: query.hub,
      actor: credential.actor,
      action,
      object: 'orders',
      change: (before) => ({ ...before, acceptingOrders }),
      isShown: (health: HubHealth) => health.accepting_orders === acceptingOrders,
    })
    return ok(applied ? 200 : 202, { accepting_orders: acceptingOrders })
  }

  return {
    'owner.controls.enable_bin': (request) => setBin(request, 'controls.enable_bin', () => true),
    'owner.controls.disable_bin': (request) => setBin(request, 'controls.disable_bin', () => false),
    'owner.controls.toggle_bin': (request) => setBin(request, 'controls.toggle_bin', (was) => !was),
    'owner.controls.enable_fridge': (request) => setFridge(request, 'controls.enable_fridge', true),
    'owner.controls.disable_fridge': (request) => setFridge(request, 'controls.disable_fridge', false),
    'owner.controls.stop_orders': (request) => setIntake(request, 'controls.stop_orders', false),
    'owner.controls.resume_orders': (request) => setIntake(request, 'controls.resume_orders', true),
  }
}

/** The operators' desired state of a hub, which reaches the hub when it is online. */
export interface Configuration {
  acceptingOrders: boolean
  disabledBins: readonly number[]
  disabledFridges: readonly number[]
}

interface ConfigurationRequest {
  hubId: number
  /** For the audit log. */
  actor: string
  action: string
  object: string
  change: (before: Configuration) => Configuration
  /** The fridge that is confirmed with it. */
  confirms?: number
  /** Whether the hub's own report shows the change. */
  isShown: (health: HubHealth, after: Configuration) => boolean
}

interface Configured {
  after: Configuration
  /** Whether the hub has applied it; if not, it will on its return. */
  applied: boolean
}

/** The wait for a hub's report of an applied change, in milliseconds: the next reader then sees it. */
const REPORT_MS = 1500

const Numbers = z.array(z.int())

/**
 * Changes the desired state of a hub and sends it, in one transaction. Then waits until an online hub has
 * applied it. Changes of one hub are serialised: two simultaneous toggles toggle twice.
 */
export async function configure(context: CloudContext, request: ConfigurationRequest): Promise<Configured> {
  const { db, runtime, settings } = context
  const { hubId, actor, action, object, isShown, confirms } = request
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
    if (health === null || !isShown(health, after)) return false
    return confirms === undefined || !(await isShutOff(db.kysely, hubId, confirms))
  })
  return { after, applied: true }
}

/** Changes the desired state of a hub and sends it, in the caller's transaction. */
export async function setDesired(
  tx: Tx,
  context: CloudContext,
  request: Pick<ConfigurationRequest, 'hubId' | 'change' | 'confirms'>,
): Promise<{ after: Configuration; place: OutboxPlace | null }> {
  const { hubId } = request
  const after = await change(tx, context, request)
  const config = await readHubConfig(tx, context, hubId)
  const place = await enqueue(tx, hubId, { kind: 'config', config })
  checkBins(tx, context, hubId)
  await publishHubChange(tx, context, hubId)
  return { after, place }
}

async function change(
  tx: Tx,
  context: CloudContext,
  { hubId, change: apply, confirms }: Pick<ConfigurationRequest, 'hubId' | 'change' | 'confirms'>,
): Promise<Configuration> {
  const now = context.runtime.clock.now()
  const hub = await tx
    .forUpdate(
      tx.q
        .selectFrom('hubs')
        .select(['accepting_orders', 'disabled_bins', 'disabled_fridges', 'confirmed_fridges'])
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
      ...(confirms !== undefined && { confirmed_fridges: JSON.stringify(withConfirmed(hub, confirms, now)) }),
    })
    .where('id', '=', hubId)
    .execute()
  await blockDisabled(tx, hubId, after.disabledFridges, now)
  return after
}

/** Whether the hub's ledger does not yet record that it sells from the fridge again. */
async function isShutOff(q: Queries, hubId: number, fridge: number): Promise<boolean> {
  const row = await q
    .selectFrom('hub_fridge_states')
    .select('state')
    .where('hub_id', '=', hubId)
    .where('fridge', '=', fridge)
    .executeTakeFirst()
  return row?.state === 'shutoff'
}

const withConfirmed = (hub: Parameters<typeof readConfirmed>[0], fridge_number: number, at: number) => [
  ...readConfirmed(hub).filter((each) => each.fridge_number !== fridge_number),
  { fridge_number, at },
]

const detailOf = ({ acceptingOrders, disabledBins, disabledFridges }: Configuration) => ({
  accepting_orders: acceptingOrders,
  disabled_bins: disabledBins,
  disabled_fridges: disabledFridges,
})

/** The list with or without a number, in order. */
export const withNumber = (numbers: readonly number[], number: number, present: boolean): number[] =>
  [...numbers.filter((each) => each !== number), ...(present ? [number] : [])].toSorted((a, b) => a - b)
