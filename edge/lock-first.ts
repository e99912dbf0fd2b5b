import type { GpioLines } from '../protocol/model/hardware.ts'
import type { Log } from '../protocol/model/log.ts'
import { reasonOf } from '../protocol/model/repeated-lines.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import type { LockConfig } from './config.ts'
import { lockAll } from './hardware/lock-all.ts'
import { JournalInUse, type StoreLock } from './journal/store-lock.ts'
import { openGpio } from './open-gpio.ts'
import { lockJournal } from './open-hub.ts'

/**
 * Locks the doors that an earlier process left unlocked (I7), before anything else of the start can fail: other settings, a move
 * to another cell, the page. Throws `JournalInUse` if another process drives them. Other errors end no start: the hub tries again.
 */
export async function lockFirst(config: LockConfig | undefined, runtime: Runtime, log: Log): Promise<void> {
  if (config === undefined) return
  let lock: StoreLock | undefined
  try {
    lock = lockOrNone(config.store, runtime)
    const gpio = await openLocked(config, runtime, log)
    gpio.close()
  } catch (error) {
    if (error instanceof JournalInUse) throw error
    log.warn({ reason: reasonOf(error) }, 'the locks cannot be driven before all settings are read')
  } finally {
    lock?.release()
  }
}

/** Opens the lines, and locks all doors. */
export async function openLocked(
  config: Pick<LockConfig, 'gpio' | 'hardware'>,
  runtime: Runtime,
  log: Log,
): Promise<GpioLines> {
  const gpio = await openGpio(config, runtime, log)
  lockAll(gpio, config.hardware.gpio.lines, log)
  return gpio
}

/** A card that fails must not keep a door open. */
function lockOrNone(path: string, runtime: Runtime): StoreLock | undefined {
  try {
    return lockJournal(path, runtime)
  } catch (error) {
    if (error instanceof JournalInUse) throw error
    return undefined
  }
}
