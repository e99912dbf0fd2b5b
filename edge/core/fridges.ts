import { fridgeSubject } from '../../protocol/model/subject.ts'
import type { HubConfig } from '../../protocol/mqtt/cloud-entries.ts'
import type { FridgeRow } from '../journal/states.ts'
import { isUsable, type Context } from './context.ts'
import { fridgeDevice } from './layout.ts'
import { setAlarm } from './ledger.ts'

/**
 * The health shutoff: what was too warm for too long is not sold any more, whether the cloud can be heard or not, before a
 * person has looked at it.
 */

/** What is known of a fridge that is read, for the decision. Durations in milliseconds. */
export interface FridgeFacts {
  celsius: number
  limitCelsius: number
  /** Since it was last read as cold. */
  warmForMs: number
  /** Part of that lies before this life of the hub, and nobody has said yet how long that is. */
  isLengthUnknown: boolean
  /** For how long it has been read without interruption. */
  readForMs: number
}

/** `clockWaitMs`: for so long the cloud is waited for, which may know for how long the power was away. */
export interface FridgeLimits {
  healthShutoffMs: number
  clockWaitMs: number
}

/** What a reading means; `ms`: how long until it means a shutoff. */
export function judgeFridge(
  { celsius, limitCelsius, warmForMs, isLengthUnknown, readForMs }: FridgeFacts,
  { healthShutoffMs, clockWaitMs }: FridgeLimits,
): { kind: 'cold' } | { kind: 'warm'; ms: number } | { kind: 'shutoff' } {
  if (celsius <= limitCelsius) return { kind: 'cold' }
  const ms = isLengthUnknown ? clockWaitMs - readForMs : healthShutoffMs - warmForMs
  return ms <= 0 ? { kind: 'shutoff' } : { kind: 'warm', ms }
}

/** Looks at every fridge. Returns in how many milliseconds time alone may change what it finds. */
export function watchFridges(context: Context): number | undefined {
  const waits = context.layout.fridges.map(({ number }) => watchFridge(context, number))
  const known = waits.filter((ms) => ms !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}

function watchFridge(context: Context, number: number): number | undefined {
  const { journal, devices, cloud, settings, layout, runtime, log } = context
  const memory = devices.fridge(number)
  const nowMs = runtime.clock.monotonic()
  if (!isUsable(context, fridgeDevice(number)) || memory.celsius === undefined) {
    memory.readSince = undefined
    return undefined
  }
  memory.readSince ??= nowMs
  const row = journal.fridges.find(number)
  // Written by an earlier life of the hub.
  if (memory.noted === 'never') memory.isInherited = row !== undefined
  const now = cloud.now()
  const { limitCelsius } = layout.fridges.find((fridge) => fridge.number === number)!
  const warmSince = row?.warm_since ?? row?.read_at ?? now
  const verdict = judgeFridge(
    {
      celsius: memory.celsius,
      limitCelsius,
      warmForMs: now - warmSince,
      isLengthUnknown: memory.isInherited && !cloud.isKnown(),
      readForMs: nowMs - memory.readSince,
    },
    settings,
  )
  if (verdict.kind === 'cold') memory.isInherited = false
  const warm_since = verdict.kind === 'cold' ? null : warmSince
  const shutoff_at = row?.shutoff_at ?? (verdict.kind === 'shutoff' ? now : null)
  // That it was read is written down now and then: by that the next life knows for how long nobody looked.
  if (memory.noted !== 'lately' || row?.warm_since !== warm_since || row.shutoff_at !== shutoff_at) {
    memory.noted = 'lately'
    journal.fridges.put({ number, warm_since, read_at: now, shutoff_at })
  }
  if (shutoff_at !== null && row?.shutoff_at === null)
    log.warn(
      { fridge: number, celsius: memory.celsius },
      'a fridge was too warm for too long: nothing of it is sold',
    )
  noteWarmAlarm(context, number, memory.celsius, verdict.kind === 'cold' ? undefined : now - warmSince)
  return verdict.kind === 'warm' ? verdict.ms : undefined
}

/** A fridge that stays warm is an alarm; one whose door was open for a moment is not. */
function noteWarmAlarm(
  context: Context,
  number: number,
  celsius: number,
  warmForMs: number | undefined,
): void {
  const subject = fridgeSubject(number)
  if (warmForMs === undefined) setAlarm(context, 'fridge_warm', subject, false, '')
  else if (warmForMs >= context.settings.warmAlarmMs)
    setAlarm(context, 'fridge_warm', subject, true, `${celsius} °C`)
}

/** The fridges from which nothing is sold before a person has looked. */
export const shutFridges = ({ journal }: Pick<Context, 'journal'>): number[] =>
  journal.fridges
    .all()
    .filter(({ shutoff_at }) => shutoff_at !== null)
    .map(({ number }) => number)

/** A person has looked at what is in a fridge: it is sold again. False where it was not shut off. */
export function confirmFridge({ journal, devices, cloud }: Context, number: number): boolean {
  const row = journal.fridges.find(number)
  if (row === undefined || row.shutoff_at === null) return false
  devices.fridge(number).isInherited = false
  journal.fridges.put({
    number,
    warm_since: null,
    read_at: cloud.now(),
    shutoff_at: null,
  } satisfies FridgeRow)
  return true
}

/** People have confirmed fridges in the cloud: what was shut off before that is sold again. */
export function confirmByCloud(context: Context, { confirmed_fridges }: HubConfig): void {
  for (const { fridge_number, at } of confirmed_fridges) {
    const shutoffAt = context.journal.fridges.find(fridge_number)?.shutoff_at ?? null
    if (shutoffAt !== null && shutoffAt <= at) confirmFridge(context, fridge_number)
  }
}
