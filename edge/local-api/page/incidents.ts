import { alarmKinds, alarmMessage } from '../../../protocol/model/alarms.ts'
import { takenBinsText, type BinObstacle, type TakenBin } from '../../../protocol/model/taken-bins.ts'
import { rowSubject, subjectWithProduct } from '../../../protocol/model/subject.ts'
import type { LocalState } from '../local-state.ts'

/** Why the hub sells nothing, and the remedy. */
interface Obstacle {
  /** The alarm's code; null if a person stopped the sale on purpose. */
  code: 'no_bin_available' | 'move_failed' | null
  text: string
  remedy: string
}

/**
 * Why a hub sells nothing although no alarm explains it: no bin is free, orders are stopped, or no row can
 * dispense. Null if it can sell. The cloud's alarm `no_bin_available` has the same sentence.
 */
export function sellingObstacle(state: LocalState): Obstacle | null {
  if (state.waits_to_leave != null)
    return {
      code: 'move_failed',
      text: `The hub is closed, and cannot leave for another installation yet: ${state.waits_to_leave}.`,
      remedy:
        'End this reason. The hub then leaves within a minute. If the reason names a claim code or the enrolment there, the operator must send another code.',
    }
  const taken = takenBins(state)
  if (taken)
    return {
      code: 'no_bin_available',
      text: alarmMessage('no_bin_available', '', takenBinsText(taken)),
      remedy: alarmKinds.no_bin_available.remedy,
    }
  if (!state.health.accepting_orders)
    return {
      code: null,
      text: 'The hub takes no orders.',
      remedy: state.held.orders
        ? 'A person stopped orders on this page: resume them at the whole hub below.'
        : 'The owner stopped orders, or the hub waits for its devices: resume orders with resume_orders or in the console.',
    }
  if (
    state.stock.length > 0 &&
    state.stock.every(({ quantity, blocked }) => quantity === 0 || blocked !== null)
  )
    return {
      code: null,
      text: 'The hub sells nothing: every row is empty or blocked.',
      remedy: 'Refill the rows and count them here; a count also unblocks a row.',
    }
  return null
}

/** The bins, if none is free or becomes free automatically; otherwise null. */
function takenBins({ health, orders }: LocalState): TakenBin[] | null {
  const taken: TakenBin[] = []
  for (const bin of health.bins) {
    const order = orders.find(({ order_id }) => order_id === bin.order_id)
    const reason = reasonOf(bin, order?.phase)
    if (reason === null) return null
    taken.push({ bin: bin.bin_number, reason, orderId: order?.order_number ?? null })
  }
  return taken.length > 0 ? taken : null
}

/** Phases of an order after which the bin becomes free automatically. */
const leaving: readonly (string | undefined)[] = [
  'queued',
  'recovering',
  'preparing',
  'collecting',
  'completed',
]

function reasonOf(
  { enabled, status, occupied, door, order_id, fault_code }: LocalState['health']['bins'][number],
  phase: string | undefined,
): BinObstacle | null {
  if (!enabled) return 'disabled'
  if (status === 'offline' || occupied === null) return 'offline'
  if (status === 'fault' || fault_code !== null) return 'fault'
  if (order_id !== null) {
    if (leaving.includes(phase)) return null
    return phase === 'ready' ? 'ready' : 'left_behind'
  }
  if (occupied) return 'left_behind'
  return door === 'closed' ? null : 'open'
}

/** A row with its product: `row 1/2/3 (Cola)`. Other subjects stay unchanged. */
export function nameOf({ stock }: Pick<LocalState, 'stock'>, subject: string): string {
  const held = stock.find(({ location }) => rowSubject(location) === subject)
  return held?.name == null ? subject : subjectWithProduct(subject, held.name)
}

/**
 * Whether an operation of unknown outcome blocks the row. Then the operation's card is shown instead of the
 * alarm, so that the person is asked once.
 */
export const isAsked = (
  { unknown_operations }: Pick<LocalState, 'unknown_operations'>,
  { code, subject }: Pick<LocalState['alarms'][number], 'code' | 'subject'>,
): boolean =>
  code === 'row_blocked' &&
  unknown_operations.some(({ location }) => location !== null && rowSubject(location) === subject)
