import type { HubAlarmCode } from '../../protocol/model/alarms.ts'
import { binSubject, cabinetSubject, fridgeSubject, rowSubject } from '../../protocol/model/subject.ts'
import type { Condition } from '../journal/tables.ts'
import type { BinView } from './bins/bin.ts'
import { isUsable, type Context } from './context.ts'
import { binDevice, cabinetDevice, fridgeDevice, type Layout } from './layout.ts'
import { setAlarm } from './ledger.ts'
import { earliest } from './step.ts'
import { readingOf, shutFridges, unprovenFridges } from './fridges.ts'
import { BY_PERSON, cabinetsOf, type BlockedRows } from './blocked-rows.ts'

/**
 * Reports to the cloud which rows, bins, cabinets and fridges can be used. Each change is reported in the
 * transaction of its event, so that the cloud sells nothing that the hub will not dispense. Returns the
 * milliseconds until time alone may change a state.
 */
export function reportStates(
  context: Context,
  bins: readonly BinView[],
  blockedNow: BlockedRows,
): number | undefined {
  const { reported } = context.state
  const waits: number[] = []
  const compare = (subject: string, condition: Condition | Pause): void => {
    if (condition.of === 'pause') waits.push(condition.ms)
    else if (!isSame(reported.find(subject)?.state, condition)) report(context, subject, condition)
  }
  for (const bin of bins) {
    compare(binSubject(bin.number), binCondition(context, bin))
    if (bin.settlesMs !== undefined) waits.push(bin.settlesMs)
  }
  for (const cabinet of context.layout.cabinets)
    compare(cabinetSubject(cabinet), cabinetCondition(context, cabinet))
  for (const { number } of context.layout.fridges)
    compare(fridgeSubject(number), fridgeCondition(context, number))
  const blocks = [...blockedNow.values()]
  for (const { location, why } of blocks)
    compare(rowSubject(location), { of: 'row', location, blocked: why.slice(0, 32) })
  const blocked = new Set(blocks.map(({ location }) => rowSubject(location)))
  for (const { subject, state } of reported.all()) {
    if (state.of !== 'row' || blocked.has(subject)) continue
    report(context, subject, { ...state, blocked: null })
    reported.delete(subject)
  }
  return earliest(waits)
}

/** Whether two states of a subject are equal. The location of a row is part of its subject. */
function isSame(reported: Condition | undefined, condition: Condition): boolean {
  if (reported === undefined) return false
  const [known, now] = [reported, condition] as unknown as Record<string, unknown>[]
  return Object.keys(condition).every((name) => name === 'location' || known![name] === now![name])
}

/** Reports removed hardware as out of use, once. Otherwise the cloud would sell by the last report. */
export function reportAbsent(context: Context): void {
  const { reported } = context.state
  for (const { subject, state } of reported.all()) {
    const last = lastCondition(context.layout, state)
    if (!last) continue
    report(context, subject, last)
    reported.delete(subject)
  }
}

/** The final state of a removed part; undefined if the part exists. Blocks of rows end on their own. */
function lastCondition({ bins, cabinets, fridges }: Layout, reported: Condition): Condition | undefined {
  switch (reported.of) {
    case 'row':
      return undefined
    case 'bin': {
      const isThere = bins.some(({ number }) => number === reported.bin)
      return isThere ? undefined : { ...reported, state: 'offline', order_id: null, fault: null }
    }
    case 'cabinet':
      return cabinets.includes(reported.cabinet) ? undefined : { ...reported, withheld: 'silent' }
    case 'fridge':
      return fridges.some(({ number }) => number === reported.fridge)
        ? undefined
        : { ...reported, state: 'unknown' }
  }
}

/** The reported state stays valid for `ms` without new information. */
interface Pause {
  of: 'pause'
  ms: number
}

function report(context: Context, subject: string, condition: Condition): void {
  const { state, ledger, cloud } = context
  const since = cloud.now()
  state.reported.put({ subject, state: condition, since })
  ledger.report({ kind: 'state', state: { ...condition, since } })
  const alarm = alarmOf(context, condition)
  if (alarm) setAlarm(context, alarm.code, subject, alarm.raised, alarm.detail)
}

/** The alarm of a state change, if people must know about it. */
function alarmOf(
  { devices, runtime }: Context,
  condition: Condition,
): { code: HubAlarmCode; raised: boolean; detail: string } | undefined {
  switch (condition.of) {
    case 'row':
      // A person who blocks a row knows it.
      return {
        code: 'row_blocked',
        raised: condition.blocked !== null && condition.blocked !== BY_PERSON,
        detail: condition.blocked ?? '',
      }
    case 'bin': {
      if (condition.state === 'offline') return undefined
      const isFlickering =
        devices.bin(condition.bin).steady.occupied.value(runtime.clock.monotonic()) === 'unsettled'
      const detail = isFlickering
        ? 'its light barrier does not settle'
        : condition.order_id === null
          ? 'something is left in it'
          : `left of ${condition.order_id}`
      return { code: 'bin_blocked', raised: condition.state === 'left_behind', detail }
    }
    case 'fridge': {
      const isUnread = devices.fridge(condition.fridge).unreadable !== undefined
      const detail = isUnread ? 'no valid reading for too long' : 'too warm for too long'
      return { code: 'health_shutoff', raised: condition.state === 'shutoff', detail }
    }
    case 'cabinet':
      return undefined
  }
}

/** State of a device that cannot be used: its last state for `silentMs`, then `silent`. */
function conditionWhileSilent<S extends Condition>(
  { silentSince, runtime, settings }: Context,
  device: string,
  isUsed: boolean,
  silent: S,
): S | Pause | undefined {
  if (isUsed) {
    silentSince.delete(device)
    return undefined
  }
  const now = runtime.clock.monotonic()
  const since = silentSince.get(device) ?? now
  silentSince.set(device, since)
  const leftMs = since + settings.silentMs - now
  return leftMs > 0 ? { of: 'pause', ms: leftMs } : silent
}

function binCondition(context: Context, bin: BinView): Condition | Pause {
  const { number, capacity, fault, orderId: order_id } = bin
  const condition = { of: 'bin', bin: number, capacity, state: 'offline', order_id, fault } as const
  const silentCondition = conditionWhileSilent(context, binDevice(number), bin.up, condition)
  if (silentCondition) return silentCondition
  const state = useOf(asReported(bin))
  // The sensors' current values may be a flicker. The report waits until the values have held, or do not
  // settle.
  const isSure = bin.settlesMs === undefined || isUnsettled(bin) || state === useOf(bin)
  return isSure ? { ...condition, state } : { of: 'pause', ms: bin.settlesMs! }
}

const isUnsettled = ({ reported }: BinView): boolean =>
  reported.door === 'unsettled' || reported.occupied === 'unsettled'

/** The bin by its debounced sensor values. A sensor that does not settle counts as neither closed nor empty. */
function asReported(bin: BinView): BinView {
  const { door, occupied } = bin.reported
  return {
    ...bin,
    door: door === 'unsettled' ? 'unknown' : door,
    occupied: occupied === 'unsettled' ? undefined : occupied,
  }
}

/** The bin's state for the next order. */
function useOf(bin: BinView): Extract<Condition, { of: 'bin' }>['state'] {
  if (bin.orderId !== null) return isLeftBehind(bin) ? 'left_behind' : 'held'
  if (bin.fault !== null) return 'faulty'
  if (bin.occupied !== false) return 'left_behind'
  return bin.door === 'closed' ? 'free' : 'open'
}

/** Its order ended without the customer, and there is no proof that its units were taken out. */
const isLeftBehind = ({ phase, occupied, filled, opened }: BinView): boolean => {
  switch (phase) {
    case 'queued':
    case 'recovering':
    case 'preparing':
    case 'ready':
    case 'collecting':
      return false
    case 'completed':
      return occupied !== false
    case 'cancelled':
    case 'timed_out':
    case 'failed':
    case 'unclaimed':
    case undefined:
      return occupied !== false || (filled > 0 && !opened)
  }
}

function cabinetCondition(context: Context, cabinet: number): Condition | Pause {
  const device = cabinetDevice(cabinet)
  const silent = { of: 'cabinet', cabinet, withheld: 'silent' } as const
  if (cabinetsOf(context, shutFridges(context)).has(cabinet)) return { ...silent, withheld: 'shutoff' }
  const isUnproven = cabinetsOf(context, unprovenFridges(context)).has(cabinet)
  // Before the cloud's time arrives, a moment after the connection, the fridge may be unproven only until then.
  if (isUnproven && context.cloud.isKnown()) return silent
  const isSelling = isUsable(context, device) && !isUnproven
  return conditionWhileSilent(context, device, isSelling, silent) ?? { ...silent, withheld: null }
}

function fridgeCondition(context: Context, fridge: number): Condition | Pause {
  const known = context.state.fridges.find(fridge)
  if (known && known.shutoff_at !== null) return { of: 'fridge', fridge, state: 'shutoff' }
  const device = fridgeDevice(fridge)
  const isAnswering = isUsable(context, device) && readingOf(context, fridge) !== undefined
  const silent = { of: 'fridge', fridge, state: 'unknown' } as const
  return (
    conditionWhileSilent(context, device, isAnswering, silent) ?? {
      ...silent,
      state: (known?.warm_since ?? null) === null ? 'cold' : 'warm',
    }
  )
}
