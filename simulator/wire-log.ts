import type { Clock } from '../protocol/model/runtime.ts'
import { decodeFrame } from '../protocol/serial/codec.ts'
import { acknowledged } from '../protocol/serial/frames.ts'
import type { SimulatedHub } from './simulated-hub.ts'
import type { WireEntry } from './wire-entry.ts'

type Fresh = WireEntry extends infer Entry
  ? Entry extends WireEntry
    ? Omit<Entry, 'n' | 'at_ms'>
    : never
  : never

export interface WireLog {
  /** Entries with `n` greater than `after` that are still kept, the oldest first, at most `limit`. */
  entries(after: number, limit?: number): readonly WireEntry[]
  stop(): void
}

/** Writes down what passes a hub's lines and pins. The oldest entries go when there are more than `kept`. */
export function createWireLog(hub: SimulatedHub, clock: Clock, kept: number): WireLog {
  const startedAt = clock.monotonic()
  let log: WireEntry[] = []
  let count = 0

  function note(entry: Fresh): void {
    log.push({ n: ++count, at_ms: Math.round((clock.monotonic() - startedAt) * 1000) / 1000, ...entry })
    // In pieces: taking one from the front of a long list costs as much as taking many.
    if (log.length > kept * 1.25) log = log.slice(-kept)
  }

  const removals = [
    ...hub.wires.map(({ controllerId: controller, onTraffic }) =>
      onTraffic(({ direction, line, arrived }) => {
        const isWhole = arrived.length === 1 && arrived[0] === line
        note({
          kind: 'frame',
          controller,
          direction,
          line,
          ...(!isWhole && { arrived }),
          ...readingOf(line),
        })
      }),
    ),
    hub.gpio.onChange((gpio, level, by) => note({ kind: 'edge', gpio, level, by })),
    hub.world.chronicle.onRecord((record) => {
      if (record.kind === 'loaded') return
      const phase = record.kind === 'began' ? 'began' : 'ended'
      const { device, action, operation_id, detail } = record.kind === 'began' ? record.motion : record.act
      note({
        kind: 'motion',
        phase,
        device,
        action,
        ...(operation_id !== undefined && { operation_id }),
        detail,
      })
    }),
  ]

  return {
    entries(after, limit = kept) {
      const from = log.findIndex(({ n }) => n > after)
      return from < 0 ? [] : log.slice(from, from + limit)
    },
    stop() {
      for (const remove of removals) remove()
    },
  }
}

function readingOf(
  line: string,
): Pick<Extract<WireEntry, { kind: 'frame' }>, 'type' | 'asks' | 'seq' | 'fields' | 'error'> {
  const decoded = decodeFrame(line)
  if (!decoded.ok) return { error: decoded.error, ...(decoded.seq !== undefined && { seq: decoded.seq }) }
  const { seq, type, ...fields } = decoded.frame
  return {
    type,
    asks: acknowledged.has(type),
    seq,
    fields: fields as Record<string, string | number | boolean>,
  }
}

export const asJsonLines = (entries: readonly WireEntry[]): string =>
  entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')

/**
 * The wire as a value change dump (IEEE 1364 §18) for viewers of logic analysers. It has a signal for each GPIO line, a
 * signal for each motor (1 while it runs), and an event for each frame. `levels`: the present levels of the lines,
 * which determine the levels before the first edge.
 */
export function asVcd(entries: readonly WireEntry[], levels: Readonly<Record<string, number>>): string {
  const ids = new Map<string, string>()
  const idOf = (signal: string): string => {
    const id = ids.get(signal) ?? codeOf(ids.size)
    ids.set(signal, id)
    return id
  }
  const first = new Map<string, number>()
  for (const entry of entries)
    if (entry.kind === 'edge' && !first.has(entry.gpio)) first.set(entry.gpio, 1 - entry.level)
  const lines = Object.entries(levels).map(([name, level]) => [idOf(name), first.get(name) ?? level] as const)
  const declared = Object.keys(levels).map((name) => `$var wire 1 ${idOf(name)} ${name} $end`)
  const motors = new Set(
    entries.flatMap((entry) => (entry.kind === 'motion' && 'operation_id' in entry ? entry.device : [])),
  )
  for (const motor of motors) declared.push(`$var wire 1 ${idOf(`runs ${motor}`)} ${nameOf(motor)}_runs $end`)
  const frames = entries.flatMap((entry) =>
    entry.kind === 'frame' ? `${entry.controller} ${entry.direction}` : [],
  )
  for (const frame of new Set(frames)) declared.push(`$var event 1 ${idOf(frame)} ${nameOf(frame)} $end`)

  const body: string[] = []
  let at = -1
  for (const entry of entries) {
    const change = changeOf(entry, idOf)
    if (change === undefined) continue
    const us = Math.round(entry.at_ms * 1000)
    if (us > at) body.push(`#${us}`)
    at = Math.max(at, us)
    body.push(change)
  }
  const begin = [
    ...lines.map(([id, level]) => `${level}${id}`),
    ...[...motors].map((motor) => `0${idOf(`runs ${motor}`)}`),
  ]
  return [
    '$timescale 1us $end',
    '$scope module hub $end',
    ...declared,
    '$upscope $end',
    '$enddefinitions $end',
    '$dumpvars',
    ...begin,
    '$end',
    ...body,
    '',
  ].join('\n')
}

function changeOf(entry: WireEntry, idOf: (signal: string) => string): string | undefined {
  switch (entry.kind) {
    case 'edge':
      return `${entry.level}${idOf(entry.gpio)}`
    case 'frame':
      return `1${idOf(`${entry.controller} ${entry.direction}`)}`
    case 'motion':
      // An action of a hand has no motor.
      if (entry.operation_id === undefined) return undefined
      return `${entry.phase === 'began' ? 1 : 0}${idOf(`runs ${entry.device}`)}`
  }
}

const nameOf = (text: string): string => text.replaceAll(/[^A-Za-z0-9_]/g, '_')

/** A short name of printable characters, unique for each number. */
function codeOf(index: number): string {
  const digit = String.fromCharCode(33 + (index % 94))
  return index < 94 ? digit : codeOf(Math.floor(index / 94) - 1) + digit
}
