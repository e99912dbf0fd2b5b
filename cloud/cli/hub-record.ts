import { readVitals } from '../gateway/heartbeats.ts'
import { z } from 'zod'
import { nameText } from '../../protocol/model/name-text.ts'
import type { HubStatus } from '../../protocol/contract/owner-hubs.ts'
import { TaxPercent, toMillipercent } from '../commerce/catalogue/pricing.ts'
import { notSellingReason } from '../commerce/orders/intake.ts'
import { certificateOf } from '../gateway/hub-certificates.ts'
import { hubState, shownHubStatus } from '../gateway/hub-state.ts'
import { setDesired } from '../operations/controls/configuration.ts'
import { shownMove } from '../operations/ownership/next-cell.ts'
import { NewHub } from '../operations/hubs/create-hub.ts'
import { appliedState, type DesiredChange, storeDesired } from '../operations/hubs/desired.ts'
import { describeHub } from '../operations/hubs/hubs.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import type { CloudContext } from '../platform/context.ts'
import { type HubWithContact, hubsWithContact, refuseRetired } from '../platform/credentials/hub-access.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { externalPayments } from '../platform/store/tables/hubs.ts'

/** A hub's record as operators read and change it: `hubs show`, `hubs set`. */

/** A hub in the list, as the API reports it, for operators. */
interface ListedHub {
  hub_id: number
  name: string
  owner: string
  hub_status: HubStatus
  online: boolean
  last_heartbeat: string | null
  version: string | null
  open_alarms: number
}

/** All hubs, by id. */
export const listHubs = (context: CloudContext): Promise<ListedHub[]> =>
  context.db.transact(async ({ q }) => {
    const hubs = await hubsWithContact(q).orderBy('hubs.id').execute()
    const owners = await q.selectFrom('owners').select(['id', 'name']).execute()
    const names = new Map(owners.map(({ id, name }) => [id, name]))
    const listed: ListedHub[] = []
    for (const hub of hubs) listed.push(await listedHub(q, context, hub, names.get(hub.owner_id)!))
    return listed
  })

async function listedHub(
  q: Queries,
  { runtime, settings }: CloudContext,
  hub: HubWithContact,
  owner: string,
): Promise<ListedHub> {
  const state = await hubState(q, hub.id, runtime.clock.now(), settings.onlineWithinMs)
  return {
    hub_id: hub.id,
    name: hub.name,
    owner,
    hub_status: shownHubStatus(hub),
    online: state.online,
    last_heartbeat: timestampOrNull(state.lastHeardAt),
    version: state.version,
    open_alarms: await countAlarms(q, hub.id),
  }
}

/**
 * A hub with its settings: the fields of the list and of `get_hub_info`, and further fields for operators.
 */
export async function showHub(q: Queries, context: CloudContext, hubId: number) {
  const hub = await hubsWithContact(q).where('hubs.id', '=', hubId).executeTakeFirst()
  if (!hub) throw new Error(`no such hub: ${hubId}`)
  const owner = await q
    .selectFrom('owners')
    .select('name')
    .where('id', '=', hub.owner_id)
    .executeTakeFirstOrThrow()
  const isDraining = hub.draining_until !== null && hub.draining_until > context.runtime.clock.now()
  const management = await q
    .selectFrom('hub_management')
    .select(['host', 'port', 'host_key'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  const certificate = await certificateOf(q, hubId, context.runtime.clock.now())
  return {
    ...(await listedHub(q, context, hub, owner.name)),
    ...describeHub(hub),
    not_selling_reason: await notSellingReason(q, context, hubId),
    tax: hub.tax_millipercent / 1000,
    external_payments: hub.external_payments,
    retired_at: timestampOrNull(hub.retired_at),
    draining_until: timestampOrNull(isDraining ? hub.draining_until : null),
    next_cell: await shownMove(q, hubId),
    desired_version: hub.desired_version,
    ...(await appliedState(q, hubId, hub.desired_version)),
    certificate: certificate
      ? { serial: certificate.serial, expires_at: timestamp(certificate.expires_at) }
      : null,
    management: management ?? null,
    vitals: (await readVitals(q, [hubId])).get(hubId) ?? null,
  }
}

/** Locks a hub that is about to be changed. Throws if there is none, or if it is retired. */
export async function lockInService(tx: Tx, hubId: number): Promise<{ name: string }> {
  const hub = await tx
    .forUpdate(tx.q.selectFrom('hubs').select(['id', 'name', 'retired_at']).where('id', '=', hubId))
    .executeTakeFirst()
  if (!hub) throw new Error(`no such hub: ${hubId}`)
  refuseRetired(hub)
  return hub
}

async function countAlarms(q: Queries, hubId: number): Promise<number> {
  const { count } = await q
    .selectFrom('alarms')
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .where('hub_id', '=', hubId)
    .where('cleared_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The changes that `hubs set` makes; an absent field keeps its value. */
export const HubChanges = NewHub.pick({
  name: true,
  street: true,
  city: true,
  state: true,
  postalCode: true,
  latitude: true,
  longitude: true,
  timezone: true,
})
  .extend({
    /** Null removes the second line of the address. */
    street2: nameText(200).nullable(),
    tax: TaxPercent,
    externalPayments: z.enum(externalPayments, `must be one of ${externalPayments.join(', ')}`),
    maintenance: z.enum(['on', 'off'], 'must be on or off'),
  })
  .partial()
export type HubChanges = z.infer<typeof HubChanges>

/** The option of each field of a new hub. */
export const hubOptions: Record<keyof NewHub, string> = {
  name: 'name',
  street: 'street',
  street2: 'street-2',
  city: 'city',
  state: 'state',
  postalCode: 'postal-code',
  longitude: 'longitude',
  latitude: 'latitude',
  timezone: 'timezone',
  tax: 'tax',
}

/** The option of each field that `hubs set` changes. */
export const changeOptions: Record<keyof HubChanges, string> = {
  ...hubOptions,
  externalPayments: 'external-payments',
  maintenance: 'maintenance',
}

/** Changes a hub's record and sends the relevant changes to the hub, in the caller's transaction. */
export async function changeHub(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  { changes, desired }: { changes: HubChanges; desired?: DesiredChange | undefined },
): Promise<void> {
  const { street, street2, postalCode, tax, externalPayments: external, maintenance, ...same } = changes
  const columns = {
    ...same,
    ...(street !== undefined && { street_address_1: street }),
    ...(street2 !== undefined && { street_address_2: street2 }),
    ...(postalCode !== undefined && { postal_code: postalCode }),
    ...(tax !== undefined && { tax_millipercent: toMillipercent(tax) }),
    ...(external !== undefined && { external_payments: external }),
    ...(maintenance !== undefined && {
      hub_status: maintenance === 'on' ? ('maintenance' as const) : ('active' as const),
    }),
  }
  if (Object.keys(columns).length > 0)
    await tx.q.updateTable('hubs').set(columns).where('id', '=', hubId).execute()
  if (desired) await storeDesired(tx, hubId, desired)
  // The hub stops or resumes its intake; integrators read its status.
  if (maintenance !== undefined) await setDesired(tx, context, { hubId, change: (before) => before })
}
