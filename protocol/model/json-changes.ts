import type { Clock } from './runtime.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** One changed value at `path`. Without `value` it was removed. The empty path is the whole document. */
export interface JsonChange {
  path: (string | number)[]
  value?: Json
}

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The smallest changes from `before` to `after`. A list that changed its length is replaced whole. Live pages receive
 * only these changes.
 */
export function changesOf(before: Json, after: Json): JsonChange[] {
  const found: JsonChange[] = []
  compare(before, after, [], found)
  return found
}

function compare(before: Json, after: Json, path: (string | number)[], found: JsonChange[]): void {
  if (before === after) return
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, value] of (after as readonly Json[]).entries())
      compare((before as readonly Json[])[index]!, value, [...path, index], found)
    return
  }
  if (!isObject(before) || !isObject(after)) {
    found.push({ path, value: after })
    return
  }
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) found.push({ path: [...path, key] })
  for (const [key, value] of Object.entries(after)) {
    if (Object.hasOwn(before, key)) compare(before[key]!, value, [...path, key], found)
    else found.push({ path: [...path, key], value })
  }
}

/** Applies changes to a value. Unchanged parts stay the same objects, so that a page does not draw them again. */
export function withChanges(value: Json, changes: readonly JsonChange[]): Json {
  return changes.reduce<Json>((before, change) => put(before, change.path, change), value)
}

function put(value: Json, [step, ...rest]: readonly (string | number)[], change: JsonChange): Json {
  if (step === undefined) return change.value ?? null
  if (Array.isArray(value)) {
    const items = value as readonly Json[]
    return items.map((item, index) => (index === step ? put(item, rest, change) : item))
  }
  const fields = isObject(value) ? value : {}
  if (rest.length > 0 || change.value !== undefined)
    return { ...fields, [step]: put(fields[step] ?? null, rest, change) }
  return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== String(step)))
}

/** A stream of server-sent events to one reader. */
interface EventStream {
  aborted: boolean
  closed: boolean
  writeSSE(message: { event: string; data: string }): Promise<void>
}

interface LiveOptions {
  clock: Clock
  /** Interval of updates, in milliseconds. */
  liveMs: number
  /** The state now; undefined ends the stream. */
  read: () => object | undefined
  /** Further events after each reading of the state. */
  more?: () => [event: string, data: object][]
}

/** Interval of `beat`, by which page and proxies know that the connection works: pages do not see comments. */
const BEAT_MS = 15_000

/**
 * Sends `state`, the whole state, and then `changes` of it, until the reader disconnects or there is no state. While
 * nothing changes it sends `beat`. The state is read only while a reader is connected.
 */
export async function streamState(
  stream: EventStream,
  { clock, liveMs, read, more = () => [] }: LiveOptions,
): Promise<void> {
  let sentAt = clock.monotonic()
  const send = async (event: string, data: unknown): Promise<void> => {
    sentAt = clock.monotonic()
    await stream.writeSSE({ event, data: JSON.stringify(data) })
  }
  let before: Json | undefined
  while (!stream.aborted && !stream.closed) {
    const now = read() as Json | undefined
    if (now === undefined) return
    const changes = before === undefined ? undefined : changesOf(before, now)
    before = now
    if (changes === undefined) await send('state', now)
    else if (changes.length > 0) await send('changes', changes)
    for (const [event, data] of more()) await send(event, data)
    if (clock.monotonic() - sentAt > BEAT_MS) await send('beat', {})
    await new Promise<void>((resolve) => void clock.after(liveMs, resolve))
  }
}
