import type { CloudContext } from '../platform/context.ts'
import type { Handlers } from '../platform/http/handler.ts'
import { positionOf } from './event-list.ts'
import type { EventFeed } from './feed.ts'

export const streamHandlers = ({ db }: CloudContext, feed: EventFeed): Handlers<'owner.events.stream'> => ({
  async 'owner.events.stream'(request) {
    const { credential, query } = request
    const filter = { reader: credential, hubId: query.hub_id, types: query.types }
    const last = request.header('Last-Event-ID')
    if (last === undefined || last === '') return feed.open(filter, undefined, ': ok\n\n')
    const position = await positionOf(db.kysely, credential, last)
    if (position !== undefined) return feed.open(filter, position, ': ok\n\n')
    return feed.open(filter, 0, ': the last event is no longer kept; this begins with the oldest that is\n\n')
  },
})
