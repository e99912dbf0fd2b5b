import type { Cancel } from '../../protocol/model/runtime.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Reply } from '../platform/http/handler.ts'
import { LiveStreams } from '../platform/http/live-streams.ts'
import type { AddressOf } from '../platform/media/addresses.ts'
import type { Media } from '../platform/media/media.ts'
import { everyInBackground, background } from '../platform/work/background.ts'
import { eventsAfter, eventText, type EventFilter, type EventRow } from './event-list.ts'
import { lastPosition, publish } from './publish.ts'

/** How many events a reader is told at once. */
const FRAME_EVENTS = 100

/** An event, and how readers are told of it. */
interface Told {
  row: EventRow
  /** Made when the first reader wants it. */
  frame?: string
}

/**
 * The live stream of events in this process. Whatever this process commits is published at once, and the events that are
 * newest are kept in memory, once for all readers; a reader that is further behind reads from the table until it has
 * caught up.
 *
 * It looks for itself as well, and that is not due work: it makes up for signals that were lost with a process and finds what
 * other processes have written. A row of due work for each event would cost every change two writes more, and one row for
 * all would be a lock for which all changes wait.
 */
export class EventFeed {
  readonly #context: CloudContext
  readonly #addressOf: AddressOf
  readonly #streams: LiveStreams<EventFilter>
  /** The newest events, in the order of their positions, without gaps. */
  #recent: Told[] = []
  /** The last position that is known here; nothing is before the first look. */
  #head: number | undefined
  #cancels: Cancel[] = []
  #looking: Promise<void> | undefined
  /** The look after the one that is under way, which may be too late for what was committed meanwhile. */
  #nextLook: Promise<void> | undefined

  constructor(context: CloudContext, { addressOf }: Pick<Media, 'addressOf'>) {
    this.#context = context
    this.#addressOf = addressOf
    this.#streams = new LiveStreams(context)
  }

  start(): void {
    const { db, settings } = this.#context
    this.#streams.start()
    const look = (): Promise<void> => this.look()
    this.#cancels = [
      db.onNews(({ kind }) => {
        if (kind === 'event') background(this.#context, 'new events', look)
      }),
      everyInBackground(this.#context, settings.eventPollMs, 'look for events', look),
    ]
  }

  /** Ends all streams; resolves when nothing of this is under way. */
  async stop(): Promise<void> {
    for (const cancel of this.#cancels) cancel()
    this.#streams.end()
    await Promise.allSettled([this.#looking, this.#nextLook])
  }

  /** Publishes what is committed by now, and tells the readers. */
  look(): Promise<void> {
    if (this.#looking === undefined)
      return (this.#looking = this.#lookOnce().finally(() => (this.#looking = undefined)))
    this.#nextLook ??= this.#looking
      .catch(() => {})
      .then(() => {
        this.#nextLook = undefined
        return this.look()
      })
    return this.#nextLook
  }

  /** A reader of what comes after a position, or from now on; `opening` is said first. */
  async open(
    filter: EventFilter,
    after: number | undefined,
    opening: string,
  ): Promise<Reply<ReadableStream>> {
    await this.look()
    let position = after ?? this.#head!
    let said = opening
    return this.#streams.open(filter, {
      poll: async () => {
        const first = said
        said = ''
        for (;;) {
          const { text, last } = await this.#after(filter, position)
          const isAtEnd = last === position
          position = last
          if (text !== '' || isAtEnd) return first + text
        }
      },
    })
  }

  async #lookOnce(): Promise<void> {
    const { db, settings } = this.#context
    await publish(this.#context)
    const last = await lastPosition(db.kysely)
    // At the first look, and where the database has been put back to what it was before.
    if (this.#head === undefined || last < this.#head) this.#begin(last)
    const known = Math.max(this.#head!, last - settings.eventsInMemory)
    if (known > this.#head!) this.#begin(known)
    if (last === known) return
    // Nobody is told: whoever comes now reads from the table.
    if (this.#streams.isEmpty) return this.#begin(last)
    const rows = await db.kysely
      .selectFrom('events')
      .selectAll()
      .where('position', '>', known)
      .where('position', '<=', last)
      .orderBy('position')
      .execute()
    const told = (rows as EventRow[]).map((row): Told => ({ row }))
    this.#recent = [...this.#recent, ...told].slice(-settings.eventsInMemory)
    this.#head = last
    this.#streams.wake(() => true)
  }

  /** Nothing is known before a position. */
  #begin(position: number): void {
    this.#recent = []
    this.#head = position
  }

  /** What a reader is told after a position, and the position where it stands then. */
  async #after(filter: EventFilter, position: number): Promise<{ text: string; last: number }> {
    const head = this.#head!
    if (position >= head) return { text: '', last: head }
    const oldest = this.#recent[0]?.row.position ?? head + 1
    if (position + 1 >= oldest) {
      const from = position + 1 - oldest
      const read = this.#recent.slice(from, from + FRAME_EVENTS)
      const wanted = read.filter(({ row }) => isWanted(filter, row))
      return {
        text: wanted.map((told) => (told.frame ??= this.#frame(told.row))).join(''),
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

/** The same as `eventsAfter` asks the database. */
function isWanted({ reader, hubId, types }: EventFilter, row: EventRow): boolean {
  if (row.endpoint_id !== null) return false
  if (reader.ownerId !== null && reader.ownerId !== row.owner_id) return false
  if (reader.hubs !== '*' && (row.hub_id === null || !reader.hubs.includes(row.hub_id))) return false
  if (hubId !== undefined && row.hub_id !== hubId) return false
  return types === undefined || types.some((type) => type === row.type)
}
