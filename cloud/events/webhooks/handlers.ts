import type { ownerWebhookRoutes } from '../../../protocol/contract/owner-webhooks.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { readBookReach } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { pageOf } from '../../platform/http/lists.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'
import {
  addEndpoint,
  deliveryRows,
  redeliver,
  removeEndpoint,
  replaceEndpoint,
  requireHubs,
  requireUrl,
  rotateSecret,
  testEndpoint,
  viewDelivery,
  viewEndpoint,
} from './endpoints.ts'
import { listOf, type EndpointRow } from '../publish.ts'
import type { Poster } from './post.ts'

const HOUR_MS = 3_600_000

export function webhookHandlers(
  context: CloudContext,
  poster: Poster,
): Handlers<keyof typeof ownerWebhookRoutes> {
  const { db } = context
  const q = db.kysely

  /** Changes a webhook that the credential may see, under its lock, with an audit record. */
  const change = <T>(
    id: string,
    { credential, action }: { credential: OwnerCredential; action: string },
    work: (tx: Tx, endpoint: EndpointRow) => Promise<T>,
  ): Promise<T> =>
    db.transact(async (tx) => {
      await tx.forUpdate(tx.q.selectFrom('webhook_endpoints').select('id').where('id', '=', id)).execute()
      const endpoint = await find(tx.q, credential, id)
      const result = await work(tx, endpoint)
      await audit(tx, context, { credential, action, endpoint })
      return result
    })

  return {
    async 'owner.webhooks.list'({ credential, query: { limit, cursor } }) {
      const all = await endpointsSeenBy(q, credential)
      const rest = cursor === undefined ? all : all.filter(isOlder(requirePlace(cursor, /^we_[\da-f-]{36}$/)))
      return pageOf(rest.slice(0, limit + 1).map(viewEndpoint), limit, ({ id }) => id)
    },

    async 'owner.webhooks.create'({ credential, body }) {
      const { ownerId, hubIds } = await requireHubs(q, credential, body.hub_ids)
      await requireUrl(poster, body.url)
      const row = await db.transact(async (tx) => {
        const added = await addEndpoint(tx, context, ownerId, { ...body, hub_ids: hubIds })
        await audit(tx, context, { credential, action: 'create', endpoint: added })
        return added
      })
      return { ...viewEndpoint(row), secret: row.secret }
    },

    'owner.webhooks.get': async ({ credential, params }) =>
      viewEndpoint(await find(q, credential, params.webhook_id)),

    async 'owner.webhooks.replace'({ credential, params: { webhook_id: id }, body: { state, ...fields } }) {
      await find(q, credential, id)
      const { ownerId, hubIds } = await requireHubs(q, credential, fields.hub_ids)
      await requireUrl(poster, fields.url)
      return change(id, { credential, action: 'replace' }, async (tx, endpoint) => {
        // A webhook receives events of its owner's hubs only.
        if (ownerId !== endpoint.owner_id) throw new ApiError('hub_not_found')
        return viewEndpoint(await replaceEndpoint(tx, context, id, { ...fields, hub_ids: hubIds }, state))
      })
    },

    'owner.webhooks.delete': ({ credential, params: { webhook_id: id } }) =>
      change(id, { credential, action: 'delete' }, async (tx, endpoint) => {
        await removeEndpoint(tx, context, endpoint)
        return undefined
      }),

    'owner.webhooks.rotate_secret': ({ credential, params: { webhook_id: id }, body }) =>
      change(id, { credential, action: 'rotate_secret' }, async (tx, endpoint) => {
        const rotated = await rotateSecret(tx, context, endpoint, body.overlap_hours * HOUR_MS)
        const { secret, previousUntil } = rotated
        return { id, secret, previous_secret_expires_at: timestamp(previousUntil) }
      }),

    'owner.webhooks.test': async ({ credential, params }) =>
      testEndpoint(context, await find(q, credential, params.webhook_id)),

    async 'owner.webhooks.deliveries'({ credential, params, query: { limit, cursor } }) {
      const { id } = await find(q, credential, params.webhook_id)
      return deliveriesOf(q, id, limit, cursor)
    },

    'owner.webhooks.redeliver': ({ credential, params: { webhook_id: id, delivery_id } }) =>
      change(id, { credential, action: 'redeliver' }, (tx) => redeliver(tx, context, id, delivery_id)),
  }
}

const audit = (
  tx: Tx,
  { runtime }: CloudContext,
  { credential, action, endpoint }: { credential: OwnerCredential; action: string; endpoint: EndpointRow },
): Promise<void> =>
  appendAudit(tx.q, runtime, {
    actor: credential.actor,
    action: `webhooks.${action}`,
    hubId: null,
    object: endpoint.id,
    result: 'executed',
    detail: { owner_id: endpoint.owner_id, url: endpoint.url },
  })

async function deliveriesOf(q: Queries, endpointId: string, limit: number, cursor: string | undefined) {
  let rows = deliveryRows(q, endpointId)
    .orderBy('d.id', 'desc')
    .limit(limit + 1)
  if (cursor !== undefined) rows = rows.where('d.id', '<', requirePlace(cursor, /^dlv_[\da-f]{20}$/))
  return pageOf((await rows.execute()).map(viewDelivery), limit, ({ id }) => id)
}

/** The ids have the order of time, so an id is a place in a list also after its row was deleted. */
function requirePlace(cursor: string, format: RegExp): string {
  if (!format.test(cursor)) throw new ApiError('invalid_cursor')
  return cursor
}

const isOlder =
  (place: string) =>
  ({ id }: EndpointRow): boolean =>
    id < place

async function find(q: Queries, credential: OwnerCredential, id: string): Promise<EndpointRow> {
  const row = await q.selectFrom('webhook_endpoints').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row || (await seenBy(q, credential, [row])).length === 0) throw new ApiError('webhook_not_found')
  return row
}

async function endpointsSeenBy(q: Queries, credential: OwnerCredential): Promise<EndpointRow[]> {
  let query = q.selectFrom('webhook_endpoints').selectAll().orderBy('id', 'desc')
  const { ownerId, hubs } = credential
  if (ownerId !== null) query = query.where('owner_id', '=', ownerId)
  else if (hubs !== '*')
    query = query.where('owner_id', 'in', (eb) =>
      eb.selectFrom('hubs').select('hubs.owner_id').where('hubs.id', 'in', numbersIn(q, hubs)),
    )
  return seenBy(q, credential, await query.execute())
}

/** A credential that is limited to hubs sees the webhooks that receive events of only these hubs. */
async function seenBy(
  q: Queries,
  credential: OwnerCredential,
  rows: readonly EndpointRow[],
): Promise<EndpointRow[]> {
  const known = rows.map((row) => ({ row, hubIds: listOf<number>(row.hub_ids) }))
  const reaches = await readBookReach(
    q,
    credential,
    known.flatMap(({ hubIds }) => hubIds),
  )
  const isSeen = ({ row, hubIds }: (typeof known)[number]): boolean =>
    (hubIds.length === 0 ? [null] : hubIds).every((hubId) => reaches(hubId, row.owner_id))
  return known.filter(isSeen).map(({ row }) => row)
}
