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
