import { sql } from 'kysely'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import type { Tx } from '../platform/store/database.ts'

/** Characters up to which every dead letter is stored whole. */
const SMALL = 4096
/** Time after which a hub with too many large dead letters is counted again. */
const COUNT_AGAIN_MS = 60_000

interface DeadLetterRoomPorts {
  clock: Clock
  settings: Pick<GatewayLimits, 'deadLetterBytes' | 'largeDeadLetters'>
  hubId: number
}

/** The room for dead letters of one hub: a defective or stolen hub must not fill the database. */
export class DeadLetterRoom {
  readonly #ports: DeadLetterRoomPorts
  /** Monotonic time until which the hub has no room for a large letter. */
  #fullUntil = -Infinity

  constructor(ports: DeadLetterRoomPorts) {
    this.#ports = ports
  }

  /** The text of an entry as its dead letter stores it: whole, or its beginning and its length. */
  async storedBody(tx: Tx, body: unknown): Promise<string> {
    const text = cut(body, this.#ports.settings.deadLetterBytes)
    return text.length <= SMALL || (await this.#hasRoom(tx)) ? text : cut(body, SMALL)
  }

  async #hasRoom(tx: Tx): Promise<boolean> {
    const { clock, settings, hubId } = this.#ports
    if (clock.monotonic() < this.#fullUntil) return false
    const large = await tx.q
      .selectFrom('dead_letters')
      .select('id')
      .where('hub_id', '=', hubId)
      .where(sql`length(body)`, '>', SMALL)
      .limit(settings.largeDeadLetters)
      .execute()
    if (large.length < settings.largeDeadLetters) return true
    this.#fullUntil = clock.monotonic() + COUNT_AGAIN_MS
    return false
  }
}

/** The stored beginning of an entry. */
interface CutEntry {
  kind?: string
  /** The length of the whole entry in characters of JSON. */
  cut_from: number
  head: string
}

/** JSON of a body, of at most `most` characters. */
function cut(body: unknown, most: number): string {
  const text = JSON.stringify(body ?? null)
  if (text.length <= most) return text
  const kind = kindOf(body)?.slice(0, 100)
  // Escaping may double its length, and the kind may have six characters for each of its own.
  const head = text.slice(0, (most - 800) / 2)
  return JSON.stringify({
    ...(kind !== undefined && { kind }),
    cut_from: text.length,
    head,
  } satisfies CutEntry)
}

export const isCut = (entry: unknown): boolean =>
  typeof entry === 'object' && entry !== null && 'cut_from' in entry && 'head' in entry

export const kindOf = (entry: unknown): string | null =>
  typeof entry === 'object' && entry !== null && 'kind' in entry && typeof entry.kind === 'string'
    ? entry.kind
    : null
