import type { HubAlarmCode } from '../../protocol/model/alarms.ts'
import { locationKey } from '../../protocol/model/location.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { HubEntry, SnapshotEntry, LocalActor, LocalEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { OperationEnd, State } from '../journal/state.ts'
import type { DropRow } from '../journal/stock.ts'
import type { OperationRow, Settler } from '../journal/tables.ts'
import type { Outbox } from '../journal/outbox.ts'
import { placeOf } from './layout.ts'

/** An entry without its time. */
type Untimed<E extends HubEntry = HubEntry> = E extends HubEntry ? Omit<E, 'at'> : never

/** The hub's reports to the cloud. Each entry is written in the transaction of the fact that it reports. */
export interface Ledger {
  report(entry: Untimed): void
  /**
   * Appends the recent drops, then the snapshot, then the entries that waited for it. `isNew`: the store is
   * new and contains no operations.
   */
  reportSnapshot(isNew?: 'new'): void
  /** Recent acknowledged drops, oldest first, for a cloud that may have lost them. */
  dropsAgain(): HubEntry[]
}

/**
 * `now`: cloud time, milliseconds. `againMs`: drops within this time are reported again to a cloud that may
 * have lost them.
 */
export function createLedger(
  state: State,
  outbox: Outbox,
  { now, againMs }: { now: () => number; againMs: number },
): Ledger {
  const append = (entry: HubEntry): void => outbox.append('ledger', entry)
  const dropsAgain = (): HubEntry[] => {
    const waiting = outbox.waitingDrops()
    return repeatedDrops(state, now() - againMs).filter((drop) => !waiting.has(drop.operation_id))
  }
  return {
    dropsAgain,
    report(entry) {
      const timed: HubEntry = { ...entry, ...numberOf(state, entry), at: now() }
      // A hub without its own stock reports nothing before its snapshot (MQTT SPEC §4).
      if (state.facts.get('live')) append(timed)
      else state.held.hold(timed)
    },
    reportSnapshot(isNew) {
      for (const drop of dropsAgain()) append(drop)
      const unknown = isNew ? {} : { unknown_operations: state.operations.unknown().map(({ id }) => id) }
      append({ ...snapshotOf(state, now()), ...unknown })
      if (state.facts.get('owes_snapshot')) state.facts.set('owes_snapshot', false)
      for (const entry of state.held.take()) append(entry)
    },
  }
}

/** The order number that people use, for an entry about an order. */
function numberOf({ orders }: State, entry: Untimed): { number?: number } {
  if (!entry.kind.startsWith('order.') || !('order_id' in entry) || entry.order_id === null) return {}
  const number = orders.find(entry.order_id)?.order_number
  return number === undefined ? {} : { number }
}

type DropEntry = Extract<HubEntry, { kind: 'stock.dropped' }>

/**
 * Recent drops with their operations, oldest first, including drops that this store knows only from
 * controllers. Each has the current stock plus the units that fell after it. So a drop is counted once, even
 * if the hub is replaced while it reports. The entries contain no order: their first report did. A cloud that
 * lost that report gets it with the order's state.
 */
function repeatedDrops({ stock, operations }: State, since: number): DropEntry[] {
  const known = operations.knownSince(since).flatMap((operation): DropRow[] => {
    const { id: cause_id, product_id, drops, ended_at: at } = operation
    const place = placeOf(operation)
    return place && product_id !== null && at !== null
      ? [{ ...place, product_id, delta: -drops, cause_id, at }]
      : []
  })
  const behind = new Map<string, number>()
  const dropEntry = ({ cause_id, product_id, delta, at, ...location }: DropRow): DropEntry => {
    const facing = stock.facings.find(location)
    const key = locationKey(location)
    const left =
      facing?.product_id === product_id
        ? { delta, quantity: facing.quantity + (behind.get(key) ?? 0) }
        : { delta: 0, quantity: 0 }
    behind.set(key, (behind.get(key) ?? 0) - left.delta)
    const nobodys = { order_id: null, line_id: null, delivered: 0, bin: null }
    return { kind: 'stock.dropped', at, product_id, location, ...left, operation_id: cause_id, ...nobodys }
  }
  return [...known, ...stock.droppedSince(since)].toReversed().map(dropEntry).toReversed()
}

function snapshotOf({ stock, reported, alarms }: State, at: number): SnapshotEntry {
  return {
    kind: 'snapshot',
    at,
    stock: stock.facings.all().map(({ product_id, cabinet, shelf, row, quantity }) => ({
      product_id,
      location: { cabinet, shelf, row },
      quantity,
    })),
    states: reported.all().map(({ state, since }) => ({ ...state, since })),
    alarms: alarms
      .all()
      .map(({ code, subject, detail, raised_at }) => ({ code, subject, detail, since: raised_at })),
  }
}

/** The journal and the ledger: changes in the journal are reported in the ledger. */
interface Books {
  state: State
  ledger: Ledger
}

export const isAlarmRaised = ({ alarms }: State, code: HubAlarmCode, subject: string): boolean =>
  alarms.all().some((alarm) => alarm.code === code && alarm.subject === subject)

interface AlarmBooks extends Books {
  log: Log
  cloud: { now: () => number }
}

/** Raises or clears an alarm. A change is reported once, not again after a restart. */
export function setAlarm(
  { state, ledger, log, cloud }: AlarmBooks,
  code: HubAlarmCode,
  subject: string,
  raised: boolean,
  detail: string,
): void {
  const { alarms } = state
  if (isAlarmRaised(state, code, subject) === raised) return
  if (raised) alarms.put({ code, subject, detail, raised_at: cloud.now() })
  else alarms.delete({ code, subject })
  if (raised) log.warn({ code, subject, detail }, 'alarm')
  else log.info({ code, subject }, 'alarm over')
  ledger.report({ kind: 'alarm', code, subject, raised, detail })
}

/** The alarms of one kind are exactly these, by subject. Alarms of subjects with `isUnknown` stay. */
export function setAlarms(
  books: AlarmBooks,
  code: HubAlarmCode,
  details: ReadonlyMap<string, string>,
  isUnknown: (subject: string) => boolean = () => false,
): void {
  for (const { code: raised, subject } of books.state.alarms.all())
    if (raised === code && !details.has(subject) && !isUnknown(subject))
      setAlarm(books, code, subject, false, '')
  for (const [subject, detail] of details) setAlarm(books, code, subject, true, detail)
}

/** Reports an incident without duration: an alarm that is raised and cleared at once. */
export function reportIncident(
  { ledger }: Pick<Books, 'ledger'>,
  code: HubAlarmCode,
  subject: string,
  detail: string,
): void {
  for (const raised of [true, false]) ledger.report({ kind: 'alarm', code, subject, raised, detail })
}

/** Reports an operation of unknown outcome (I1). */
export function reportUnknown(
  { ledger }: Books,
  operation: Pick<
    OperationRow,
    'id' | 'device' | 'action' | 'why' | 'intent_at' | 'shelf' | 'row' | 'order_id' | 'line_id' | 'product_id'
  >,
): void {
  const { id: operation_id, device, action, why, order_id, line_id, product_id } = operation
  const reason = why ?? 'unknown'
  ledger.report({
    kind: 'operation.unknown',
    operation_id,
    device,
    action,
    reason,
    started_at: operation.intent_at,
    location: placeOf(operation) ?? null,
    order_id,
    line_id,
    product_id,
  })
}

/** Resolves an operation of unknown outcome. `by` is the source, `happened` the outcome. */
export function settleOperation(
  { state, ledger }: Books,
  operation: OperationRow,
  { end, by, happened }: { end: OperationEnd; by: Settler; happened: boolean },
): void {
  state.operations.end(operation.id, end)
  state.operations.change(operation.id, { settled_by: by, happened })
  ledger.report({ kind: 'operation.settled', operation_id: operation.id, by, happened })
}

interface LocalFacts extends Partial<Pick<LocalEntry, 'outcome'>> {
  /** Undefined if the caller did not name a person. */
  by: LocalActor | undefined
  /** Units in the row. */
  before?: number
  after?: number
}

/** Reports an action of a person at the hub to the cloud's audit log. Called within the transaction of the action. */
export function reportLocal(
  { ledger }: { ledger: Ledger },
  action: string,
  subject: string,
  { by, outcome = 'executed', ...units }: LocalFacts,
): void {
  ledger.report({
    kind: 'local',
    action,
    subject,
    outcome,
    person: by?.person ?? null,
    shared_token: by?.shared_token ?? false,
    ...units,
  })
}
