import type { WireEntry } from '../../wire-entry.ts'

export type Frame = Extract<WireEntry, { kind: 'frame' }>

/** The text of an entry; searches use it. */
export function textOf(entry: WireEntry): string {
  switch (entry.kind) {
    case 'frame':
      return entry.error === undefined ? fieldsOf(entry) : `${entry.error}: ${entry.line}`
    case 'edge':
      return `${entry.level === 1 ? 'rises' : 'falls'}, moved by the ${entry.by}`
    case 'motion':
      return `${entry.action.replaceAll('_', ' ')} ${entry.phase}`
  }
}

const fieldsOf = ({ fields = {} }: Frame): string =>
  Object.entries(fields)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(' ')

/** The lane of an entry: a controller's line, a GPIO line, a device. */
export const laneOf = (entry: WireEntry): string =>
  entry.kind === 'frame' ? entry.controller : entry.kind === 'edge' ? entry.gpio : entry.device

export const typeOf = (entry: WireEntry): string =>
  entry.kind === 'frame' ? (entry.type ?? 'noise') : entry.kind === 'edge' ? 'edge' : 'motion'

/** Frames that only keep a line alive: every line has dozens a minute. */
const chatter: ReadonlySet<string> = new Set(['PING', 'PONG', 'ACK'])

export interface WireFilter {
  text: string
  /** A controller, GPIO line or device; empty means all. */
  lane: string
  withChatter: boolean
}

export function isShown(entry: WireEntry, { text, lane, withChatter }: WireFilter): boolean {
  if (lane !== '' && laneOf(entry) !== lane) return false
  if (!withChatter && entry.kind === 'frame' && entry.type !== undefined && chatter.has(entry.type))
    return false
  const searched = `${laneOf(entry)} ${typeOf(entry)} ${textOf(entry)}`.toLowerCase()
  return text === '' || searched.includes(text.toLowerCase())
}

/** The newest entries that pass the filter, the newest first. */
export function newest(entries: readonly WireEntry[], filter: WireFilter, most: number): WireEntry[] {
  const found: WireEntry[] = []
  for (let index = entries.length - 1; index >= 0 && found.length < most; index -= 1)
    if (isShown(entries[index]!, filter)) found.push(entries[index]!)
  return found
}

/** The entries from `at` on; entries are in the order of their times. */
export function since(entries: readonly WireEntry[], at: number): readonly WireEntry[] {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.at_ms < at) low = middle + 1
    else high = middle
  }
  return entries.slice(low)
}

/** The width for a label beside the bar of a run, up to the next bar of the same device; undefined if there is none. */
export function labelRoom(runs: readonly Run[], run: Run, x: (at: number) => number, end: number): number {
  const next = runs.filter((other) => other.device === run.device && other.from > run.from)
  return Math.min(end, ...next.map((other) => x(other.from))) - x(run.from) - 8
}

/** The requests and answers of a frame, in sentences. `later`: the following entries. */
export function waitsOf(frame: Frame, later: readonly WireEntry[]): string[] {
  const after = later.filter(
    (one): one is Frame => one.kind === 'frame' && one.controller === frame.controller,
  )
  const ms = (other: WireEntry): string => `${(other.at_ms - frame.at_ms).toFixed(1)} ms`
  const sentences: string[] = []
  if (frame.arrived)
    sentences.push(
      frame.arrived.length === 0
        ? 'It was lost on its way.'
        : `It arrived as ${frame.arrived.map((line) => `“${line}”`).join(' and ')}.`,
    )
  if (frame.asks && frame.error === undefined) {
    const repeats = after.filter((one) => one.direction === frame.direction && one.line === frame.line).length
    const answer = after.find(
      (one) =>
        one.direction !== frame.direction &&
        (one.type === 'ACK' || one.type === 'NAK') &&
        one.fields?.['s'] === frame.seq,
    )
    if (answer?.type === 'NAK')
      sentences.push(`It was refused after ${ms(answer)}: ${String(answer.fields?.['why'])}.`)
    else if (answer) sentences.push(`It was acknowledged after ${ms(answer)}.`)
    else
      sentences.push(
        `The ${frame.direction === 'to_hub' ? 'controller' : 'hub'} waits for its ACK, and repeats it.`,
      )
    if (repeats > 0) sentences.push(`It was sent again ${repeats === 1 ? 'once' : `${repeats} times`}.`)
  }
  if (frame.type === 'CMD') {
    const result = after.find((one) => one.type === 'RES' && one.fields?.['op'] === frame.fields?.['op'])
    sentences.push(
      result
        ? `Its result, ${String(result.fields?.['state'])}, came after ${ms(result)}.`
        : 'The hub waits for its result.',
    )
  }
  return sentences
}

/** A motor's run on the time axis; `to` is null while it runs. */
export interface Run {
  device: string
  action: string
  from: number
  to: number | null
}

export function runsIn(entries: readonly WireEntry[]): Run[] {
  const running = new Map<string, Run>()
  const runs: Run[] = []
  for (const entry of entries) {
    if (entry.kind !== 'motion' || entry.operation_id === undefined) continue
    const { device, action, at_ms: at } = entry
    const run = running.get(entry.operation_id)
    if (entry.phase === 'began') {
      const run = { device, action, from: at, to: null }
      running.set(entry.operation_id, run)
      runs.push(run)
    } else if (run) run.to = at
  }
  return runs
}

/** The intervals in which a GPIO line was 1, between `from` and `to`. */
export function highsOf(
  entries: readonly WireEntry[],
  gpio: string,
  from: number,
  to: number,
  now: number,
): [number, number][] {
  const edges = entries.filter((one) => one.kind === 'edge' && one.gpio === gpio)
  const first = edges[0]
  let since: number | null = (first?.kind === 'edge' ? 1 - first.level : now) === 1 ? -Infinity : null
  const highs: [number, number][] = []
  for (const edge of edges) {
    if (edge.kind !== 'edge') continue
    if (edge.level === 1) since ??= edge.at_ms
    else if (since !== null) {
      highs.push([since, edge.at_ms])
      since = null
    }
  }
  if (since !== null) highs.push([since, to])
  return highs
    .map(([begin, end]): [number, number] => [Math.max(begin, from), Math.min(end, to)])
    .filter(([begin, end]) => end > begin)
}
