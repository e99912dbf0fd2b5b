import type { Delivery, WebhookEndpoint } from '../../../protocol/contract/owner-webhooks.ts'
import { TEST_EVENT } from '../../../protocol/model/event-types.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { lockOwners, reachableHubs, readOwner, requireReach } from '../../platform/credentials/hub-access.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { clearAlarm, type Incident } from '../alarms/alarms.ts'
import { appendEvent } from '../append-event.ts'
import { publish, listOf, workOf, type EndpointRow } from '../publish.ts'
import type { Poster } from './post.ts'

/** The properties of a webhook that its owner sets. */
interface EndpointFields {
  url: string
  description: string | null
  event_types: WebhookEndpoint['event_types']
  hub_ids: readonly number[]
}

export const viewEndpoint = (row: EndpointRow): WebhookEndpoint => ({
  id: row.id,
  url: row.url,
  description: row.description,
  event_types: listOf(row.event_types),
  hub_ids: listOf(row.hub_ids),
  state: row.state,
  disabled_reason: row.disabled_reason,
  created_at: timestamp(row.created_at),
})

export const newSecret = ({ runtime }: CloudContext): string =>
  `whsec_${Buffer.from(runtime.random.bytes(32)).toString('base64')}`

/** Refuses an address that cannot be a webhook's. */
export async function requireUrl(poster: Poster, url: string): Promise<void> {
  const refusal = await poster.refusal(url)
  if (refusal !== undefined)
    throw ApiError.invalid({
      loc: ['body', 'url'],
      msg: `Value error, ${refusal}`,
      type: 'value_error',
      input: url.slice(0, 200),
    })
}

/**
 * The owner of a new webhook, and its hubs. A limited key creates a webhook for its hubs. An identity, which has no
 * owner, creates one for hubs of one owner.
 */
export async function requireHubs(
  q: Queries,
  credential: OwnerCredential,
  asked: readonly number[],
): Promise<{ ownerId: number; hubIds: readonly number[] }> {
  for (const hubId of asked) await requireReach(q, (id) => readOwner(q, id), credential, hubId)
  const isLimited = credential.hubs !== '*' || credential.ownerId === null
  if (credential.ownerId !== null && !isLimited) return { ownerId: credential.ownerId, hubIds: asked }
  const reached = await reachableHubs(q, credential)
  const hubs = asked.length === 0 ? reached : reached.filter(({ id }) => asked.includes(id))
  const [ownerId, another] = [...new Set(hubs.map(({ owner_id }) => owner_id))]
  if (ownerId === undefined) throw new ApiError('hub_access_denied')
  if (another !== undefined)
    throw ApiError.invalid({
      loc: ['body', 'hub_ids'],
      msg: 'Value error, the hubs must be of one owner: name them',
      type: 'value_error',
    })
  return { ownerId, hubIds: hubs.map(({ id }) => id) }
}

/** Adds a webhook. Its secret is shown only once. Throws `webhook_limit_reached`. */
export async function addEndpoint(
  tx: Tx,
  context: CloudContext,
  ownerId: number,
  { url, description, event_types, hub_ids }: EndpointFields,
): Promise<EndpointRow> {
  await requireRoom(tx, context, ownerId)
  return tx.q
    .insertInto('webhook_endpoints')
    .values({
      id: `we_${uuidv7(context.runtime)}`,
      owner_id: ownerId,
      url,
      description,
      event_types: JSON.stringify(event_types),
      hub_ids: JSON.stringify(hub_ids),
      state: 'enabled',
      disabled_reason: null,
      secret: newSecret(context),
      former_secrets: null,
      failing_since: null,
      created_at: context.runtime.clock.now(),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * The number is limited because each event costs one delivery for every webhook.
 */
async function requireRoom(tx: Tx, { settings }: CloudContext, ownerId: number): Promise<void> {
  await lockOwners(tx, [ownerId])
  const { count } = await tx.q
    .selectFrom('webhook_endpoints')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('owner_id', '=', ownerId)
    .executeTakeFirstOrThrow()
  const limit = settings.webhooksPerOwner
  if (count >= limit)
    throw new ApiError('webhook_limit_reached', `An owner has at most ${limit} webhooks.`, { limit })
}

/** The incident of a webhook that was disabled because no delivery reached it. It ends when the owner enables it. */
export const webhookIncident = ({
  id,
  owner_id,
}: Pick<EndpointRow, 'id' | 'owner_id'>): Incident<'webhook_disabled'> => ({
  ownerId: owner_id,
  kind: 'webhook_disabled',
  subject: id,
})

/** Replaces the properties of a webhook. Enabling it resets its failures, and so does a new address. */
export async function replaceEndpoint(
  tx: Tx,
  context: CloudContext,
  id: string,
  fields: EndpointFields,
  state: EndpointRow['state'] | undefined,
): Promise<EndpointRow> {
  const { url, description, event_types, hub_ids } = fields
  const row = await tx.q
    .updateTable('webhook_endpoints')
    .set((eb) => ({
      url,
      description,
      event_types: JSON.stringify(event_types),
      hub_ids: JSON.stringify(hub_ids),
      failing_since: eb.case().when('url', '=', url).then(eb.ref('failing_since')).else(null).end(),
      ...(state !== undefined && { state, disabled_reason: null, failing_since: null }),
    }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  if (state !== undefined) await clearAlarm(tx, context, webhookIncident(row))
  return row
}

/** Its pending deliveries are deleted too. */
export async function removeEndpoint(tx: Tx, context: CloudContext, endpoint: EndpointRow): Promise<void> {
  const { id } = endpoint
  await clearAlarm(tx, context, webhookIncident(endpoint))
  await tx.q.deleteFrom('due_work').where('kind', '=', workOf(id)).execute()
  await tx.q.deleteFrom('webhook_endpoints').where('id', '=', id).execute()
}

/** A rotated secret and the end of its validity. */
interface FormerSecret {
  secret: string
  until: number
}

/** The limit of former secrets, because a receiver limits the length of its headers. */
export const FORMER_SECRETS = 10

/** The valid secrets of a webhook at a time, the newest first. */
export const signingSecrets = (
  row: Pick<EndpointRow, 'secret' | 'former_secrets'>,
  now: number,
): string[] => [row.secret, ...formerSecrets(row, now).map(({ secret }) => secret)]

const formerSecrets = (
  { former_secrets }: Pick<EndpointRow, 'former_secrets'>,
  now: number,
): FormerSecret[] =>
  former_secrets === null ? [] : listOf<FormerSecret>(former_secrets).filter(({ until }) => now < until)

/**
 * Gives a webhook a new secret. The former one stays valid for `overlapMs`; earlier ones stay valid until their
 * promised times. Throws `webhook_limit_reached`.
 */
export async function rotateSecret(
  tx: Tx,
  context: CloudContext,
  endpoint: EndpointRow,
  overlapMs: number,
): Promise<{ secret: string; previousUntil: number }> {
  const now = context.runtime.clock.now()
  const previousUntil = now + overlapMs
  const former = [
    ...(overlapMs > 0 ? [{ secret: endpoint.secret, until: previousUntil }] : []),
    ...formerSecrets(endpoint, now),
  ]
  if (former.length > FORMER_SECRETS)
    throw new ApiError(
      'webhook_limit_reached',
      `This webhook has ${FORMER_SECRETS} former secrets that still sign: wait until one of them expires, or rotate with \`overlap_hours\` 0.`,
    )
  const secret = newSecret(context)
  await tx.q
    .updateTable('webhook_endpoints')
    .set({ secret, former_secrets: former.length > 0 ? JSON.stringify(former) : null })
    .where('id', '=', endpoint.id)
    .execute()
  return { secret, previousUntil }
}

/** Sends a test to an enabled webhook. */
export async function testEndpoint(context: CloudContext, endpoint: EndpointRow): Promise<Delivery> {
  const data = { webhook_id: endpoint.id, message: 'A test of this webhook.' }
  const eventId = await context.db.transact(async (tx) => {
    const event = {
      type: TEST_EVENT,
      hubId: null,
      ownerId: endpoint.owner_id,
      endpointId: endpoint.id,
      data,
    } as const
    return Promise.resolve(appendEvent(tx, context, event))
  })
  await publish(context)
  const row = await deliveryRows(context.db.kysely, endpoint.id)
    .where('events.id', '=', eventId)
    .executeTakeFirstOrThrow()
  return viewDelivery(row)
}

/** Schedules a delivery again. */
export async function redeliver(
  tx: Tx,
  { runtime }: CloudContext,
  endpointId: string,
  deliveryId: string,
): Promise<Delivery> {
  const now = runtime.clock.now()
  const again = await tx.q
    .updateTable('webhook_deliveries')
    .set({ state: 'pending', tries: 0, next_attempt_at: now })
    .where('endpoint_id', '=', endpointId)
    .where('id', '=', deliveryId)
    .returning('id')
    .executeTakeFirst()
  if (!again) throw new ApiError('delivery_not_found')
  await schedule(tx, workOf(endpointId), deliveryId, now)
  const row = await deliveryRows(tx.q, endpointId).where('d.id', '=', deliveryId).executeTakeFirstOrThrow()
  return viewDelivery(row)
}

export const deliveryRows = (q: Queries, endpointId: string) =>
  q
    .selectFrom('webhook_deliveries as d')
    .innerJoin('events', 'events.seq', 'd.event_seq')
    .select(['d.id', 'd.state', 'd.attempts', 'd.next_attempt_at', 'events.id as event_id', 'events.type'])
    .where('d.endpoint_id', '=', endpointId)

type DeliveryRow = Awaited<ReturnType<ReturnType<typeof deliveryRows>['executeTakeFirstOrThrow']>>

export const viewDelivery = (row: DeliveryRow): Delivery => ({
  id: row.id,
  event_id: row.event_id,
  type: row.type,
  state: row.state,
  attempts: listOf(row.attempts),
  next_attempt_at: timestampOrNull(row.next_attempt_at),
})
