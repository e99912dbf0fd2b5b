import type { Selectable } from 'kysely'
import type { Event } from '../../protocol/contract/owner-events.ts'
import type { EventType } from '../../protocol/model/event-types.ts'
import { ApiError } from '../platform/api-error.ts'
import { timestamp } from '../platform/calendar/days.ts'
import type { CloudContext } from '../platform/context.ts'
import type { OwnerCredential } from '../platform/credentials/credential.ts'
import { ofReachedBooks } from '../platform/credentials/hub-access.ts'
import type { Handlers } from '../platform/http/handler.ts'
import { jsonWithFiles, jsonWithImages, type AddressOf } from '../platform/media/addresses.ts'
import type { Media } from '../platform/media/media.ts'
import type { Queries } from '../platform/store/database.ts'
import { JsonText } from '../platform/store/json.ts'
import type { Tables } from '../platform/store/schema.ts'
import { publish } from './publish.ts'

export type EventRow = Selectable<Tables['events']> & { position: number }

/** The events that a reader requests, among the visible ones. */
export interface EventFilter {
  reader: Pick<OwnerCredential, 'hubs' | 'ownerId'>
  hubId?: number | undefined
  types?: readonly EventType[] | undefined
}

export function eventHandlers(
  context: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<'owner.events.list'> {
  const q = context.db.kysely
  return {
    async 'owner.events.list'({ credential, query: { hub_id: hubId, types, after, limit } }) {
      const filter: EventFilter = { reader: credential, hubId, types }
      const known = after === undefined ? 0 : await positionOf(q, credential, after)
      if (known === undefined)
        throw new ApiError('invalid_cursor', 'The cursor is not an event that is still kept.')
      // A reader sees all committed events, also if the process that wrote one has died since.
      await publish(context)
      const rows = await eventsAfter(q, filter, known, limit + 1)
      const shown = rows.slice(0, limit)
      const data = shown.map((row) => eventText(addressOf, row)).join(',')
      const next_cursor = JSON.stringify(shown.at(-1)?.id ?? after ?? null)
      return new JsonText(`{"data":[${data}],"next_cursor":${next_cursor},"has_more":${rows.length > limit}}`)
    },
  }
}

/** An event as JSON, in the form for readers. */
export function eventText(addressOf: AddressOf, row: EventRow): string {
  const { id, type, created_at, hub_id, data } = row
  const about = JSON.stringify({ id, type, created_at: timestamp(created_at), hub_id })
  return `${about.slice(0, -1)},"data":${dataText(addressOf, data)}}`
}

/** The `data` of an event as JSON, with addresses of its files. */
export const dataText = (addressOf: AddressOf, stored: string): string =>
  jsonWithFiles(addressOf, jsonWithImages(addressOf, new JsonText<Event['data']>(stored))).text

/** Events after a position, the oldest first. */
export async function eventsAfter(
  q: Queries,
  { reader, hubId, types }: EventFilter,
  position: number,
  limit: number,
): Promise<EventRow[]> {
  let query = visibleTo(q, reader).selectAll().where('position', '>', position)
  if (hubId !== undefined) query = query.where('hub_id', '=', hubId)
  if (types !== undefined) query = query.where('type', 'in', types)
  return (await query.orderBy('position').limit(limit).execute()) as EventRow[]
}

/** The position of an event; undefined if the reader may not see it or it was deleted. */
export async function positionOf(
  q: Queries,
  reader: EventFilter['reader'],
  id: string,
): Promise<number | undefined> {
  const row = await visibleTo(q, reader).select('position').where('id', '=', id).executeTakeFirst()
  return row?.position ?? undefined
}

/** The events that a credential may see. A limited key, and an identity, see the events of their hubs. */
const visibleTo = (q: Queries, reader: EventFilter['reader']) =>
  q
    .selectFrom('events')
    .where('position', 'is not', null)
    .where('endpoint_id', 'is', null)
    .where(ofReachedBooks(q, reader, 'events'))
