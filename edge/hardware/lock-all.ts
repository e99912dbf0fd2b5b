import type { GpioLine, GpioLines } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'

/**
 * Locks doors that an earlier process left unlocked (I7). The start calls it first (`lock-first.ts`),
 * because a pin keeps its level when its process dies. A lock that is already locked is not driven. Lines
 * that cannot be driven yet are handled by `Doors`, which reads them again.
 */
export function lockAll(gpio: GpioLines, lines: readonly GpioLine[], log: Log): void {
  for (const { name } of lines) {
    if (!name.endsWith('_lock') || gpio.read(name) === 0) continue
    if (gpio.write(name, 0)) log.warn({ line: name }, 'a lock was left unlocked: it is locked')
  }
}
