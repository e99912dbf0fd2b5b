import type { Cancel } from '../../protocol/model/runtime.ts'
import type { CloudContext } from '../platform/context.ts'
import { readBookReach } from '../platform/credentials/hub-access.ts'
import type { Reply, Handlers } from '../platform/http/handler.ts'
import { LiveStreams } from '../platform/http/live-streams.ts'
import type { AddressOf } from '../platform/media/addresses.ts'
import type { Media } from '../platform/media/media.ts'
import { everyInBackground, background } from '../platform/work/background.ts'
import { eventsAfter, eventText, type EventFilter, type EventRow, positionOf } from './event-list.ts'
import { lastPosition, publish, publishAll } from './publish.ts'

/** Maximum number of events in one message to a reader. */
const FRAME_EVENTS = 100

/** An event with its text for readers. */
interface FeedItem {
  row: EventRow
  /** Computed for the first reader. */
  frame?: string
}

/**
 * The live stream of events in this process. Events that this process commits are published at once. The newest events
 * are stored in memory, once for all readers. A reader that is further behind reads the table until it has caught up.
 *
 * The feed also polls, which is not due work: it compensates for signals that died with a process, and finds events of
 * other processes. A row of due work for each event would add two writes to every change. One row for all events would
 * be a lock that all changes wait for.
 */
export class EventFeed {
  readonly #context: CloudContext
  readonly #addressOf: AddressOf
  readonly #streams: LiveStreams<EventFilter>
  /** The newest events, in the order of their positions, without gaps. */
  #recent: FeedItem[] = []
  /** The last known position; undefined before the first poll. */
  #head: number | undefined
  #cancels: Cancel[] = []
  /** This process has committed an event since the last poll began. */
  #hasNews = false
  #polling: Promise<void> | undefined
  /** The next poll. The running one may have begun before the latest commit. */
  #nextPoll: Promise<void> | undefined

  constructor(context: CloudContext, { addressOf }: Pick<Media, 'addressOf'>) {
    this.#context = context
    this.#addressOf = addressOf
    this.#streams = new LiveStreams(context)
  }

  start(): void {
    const { db, settings } = this.#context
    this.#streams.start()
    const poll = (): Promise<void> => this.poll()
    this.#cancels = [
      db.onNews(({ kind }) => {
        if (kind !== 'event') return
        this.#hasNews = true
        background(this.#context, 'new events', poll)
      }),
      everyInBackground(this.#context, settings.eventPollMs, 'poll events', poll),
    ]
  }

  /** Ends all streams; resolves when nothing of this is under way. */
  async stop(): Promise<void> {
    for (const cancel of this.#cancels) cancel()
    this.#streams.end()
    await Promise.allSettled([this.#polling, this.#nextPoll])
  }

  /** Publishes the committed events and sends them to the readers. */
  poll(): Promise<void> {
    if (this.#polling === undefined)
      return (this.#polling = this.#pollOnce().finally(() => (this.#polling = undefined)))
    this.#nextPoll ??= this.#polling
      .catch(() => {})
      .then(() => {
        this.#nextPoll = undefined
        return this.poll()
      })
    return this.#nextPoll
  }

  /** A reader of the events after a position, or from now on. `opening` is sent first. */
  async open(
    filter: EventFilter,
    after: number | undefined,
    opening: string,
  ): Promise<Reply<ReadableStream>> {
    await this.poll()
    let position = after ?? this.#head!
    let pending = opening
    return this.#streams.open(filter, {
      poll: async () => {
        const first = pending
        pending = ''
        for (;;) {
          const { text, last } = await this.#after(filter, position)
          const isAtEnd = last === position
          position = last
          if (text !== '' || isAtEnd) return first + text
        }
      },
    })
  }

  async #pollOnce(): Promise<void> {
    const { db, settings } = this.#context
    const last = await this.#publish()
    // At the first poll, and after the database was restored to an earlier state.
    if (this.#head === undefined || last < this.#head) this.#begin(last)
    const known = Math.max(this.#head!, last - settings.eventsInMemory)
    if (known > this.#head!) this.#begin(known)
    if (last === known) return
    // There are no readers; a later reader reads the table.
    if (this.#streams.isEmpty) return this.#begin(last)
    const rows = await db.kysely
      .selectFrom('events')
      .selectAll()
      .where('position', '>', known)
      .where('position', '<=', last)
      .orderBy('position')
      .execute()
    const items = (rows as EventRow[]).map((row): FeedItem => ({ row }))
    this.#recent = [...this.#recent, ...items].slice(-settings.eventsInMemory)
    this.#head = last
    this.#streams.wake(() => true)
  }

  /** Returns the last position. */
  async #publish(): Promise<number> {
    if (this.#hasNews) {
      this.#hasNews = false
      return publishAll(this.#context)
    }
    await publish(this.#context)
    return lastPosition(this.#context.db.kysely)
  }

  /** Begins with an empty memory at a position. */
  #begin(position: number): void {
    this.#recent = []
    this.#head = position
  }

  /** The text for a reader after a position, and the reader's new position. */
  async #after(filter: EventFilter, position: number): Promise<{ text: string; last: number }> {
    const head = this.#head!
    if (position >= head) return { text: '', last: head }
    const oldest = this.#recent[0]?.row.position ?? head + 1
    if (position + 1 >= oldest) {
      const from = position + 1 - oldest
      const read = this.#recent.slice(from, from + FRAME_EVENTS)
      const asked = read.filter(({ row }) => isAsked(filter, row))
      const hubIds = asked.map(({ row }) => row.hub_id)
      const reaches = await readBookReach(this.#context.db.kysely, filter.reader, hubIds)
      const wanted = asked.filter(({ row }) => reaches(row.hub_id, row.owner_id))
      return {
        text: wanted.map((item) => (item.frame ??= this.#frame(item.row))).join(''),
        last: position + read.length,
      }
    }
    const rows = await eventsAfter(this.#context.db.kysely, filter, position, FRAME_EVENTS)
    const last =
      rows.length < FRAME_EVENTS ? Math.max(head, rows.at(-1)?.position ?? 0) : rows.at(-1)!.position
    return { text: rows.map((row) => this.#frame(row)).join(''), last }
  }

  #frame(row: EventRow): string {
    return `id: ${row.id}\ndata: ${eventText(this.#addressOf, row)}\n\n`
  }
}

/** The same conditions as in `eventsAfter`, apart from the reader's rights. */
function isAsked({ hubId, types }: EventFilter, row: EventRow): boolean {
  if (row.endpoint_id !== null) return false
  if (hubId !== undefined && row.hub_id !== hubId) return false
  return types === undefined || types.some((type) => type === row.type)
}

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
