import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { AppendLog } from '../storage/append-log.ts'
import {
  type Act,
  type ActDetail,
  type Beginning,
  type LoadedRow,
  type WorldRecord,
  applyRecord,
  foldRecords,
  type WorldState,
} from './world-state.ts'

/** The world's log, and the state that follows from it. */
export interface Chronicle {
  readonly state: WorldState
  /** Acts with `n` greater than `after`. */
  acts(after?: number): Act[]
  began(motion: Beginning): void
  /** Calls `listener` with each new record; returns a function that removes it. */
  onRecord(listener: (record: WorldRecord) => void): () => void
  /** Records an event. This changes the state. */
  happened(act: { device: string; action: string; operation_id?: string | undefined; detail: ActDetail }): Act
}

/**
 * Opens the log. `load` fills the shelves of a new world. Motions that ran when the process died are concluded at the
 * point where they stopped.
 */
export function openChronicle(
  log: AppendLog<WorldRecord>,
  hardware: HardwareDescription,
  clock: Clock,
  load: () => LoadedRow[],
): Chronicle {
  const records = log.read()
  const state = foldRecords(hardware, records)
  const acts = records.flatMap((record) => (record.kind === 'act' ? [record.act] : []))

  const listeners = new Set<(record: WorldRecord) => void>()

  function write(record: WorldRecord): void {
    log.append(record)
    applyRecord(state, record)
    if (record.kind === 'act') acts.push(record.act)
    for (const listener of listeners) listener(record)
  }

  const chronicle: Chronicle = {
    state,
    acts: (after = 0) => acts.slice(Math.max(0, after)),
    began: (motion) => write({ kind: 'began', motion }),
    onRecord(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    happened({ device, action, operation_id, detail }) {
      const act: Act = {
        n: acts.length + 1,
        at: new Date(clock.now()).toISOString(),
        device,
        action,
        ...(operation_id !== undefined && { operation_id }),
        detail,
      }
      write({ kind: 'act', act })
      return act
    },
  }
  if (records.length === 0) write({ kind: 'loaded', rows: load() })
  for (const motion of unfinished(records)) chronicle.happened({ ...motion, detail: cut(motion) })
  return chronicle
}

function unfinished(records: readonly WorldRecord[]): Beginning[] {
  const open = new Map<string, Beginning>()
  for (const record of records) {
    if (record.kind === 'began') open.set(record.motion.operation_id, record.motion)
    else if (record.kind === 'act' && record.act.operation_id) open.delete(record.act.operation_id)
  }
  return [...open.values()]
}

/** The result of a motion that was cut on its way. */
export function cut({ action, detail }: Pick<Beginning, 'action' | 'detail'>): ActDetail {
  const outcome = action === 'dispense' ? { fallen: 0 } : { to: 'between' }
  return { ...detail, ...outcome, completed: false }
}
