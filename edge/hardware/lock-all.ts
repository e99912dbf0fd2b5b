import type { GpioLines, GpioLine } from '../../protocol/model/hardware.ts'
import type { Log } from '../../protocol/model/log.ts'

/**
 * Locks what an earlier life left unlocked (I7), before anything that could keep this one from starting: a pin keeps its
 * level when the process that drove it dies. A lock that is locked stays untouched. Lines that cannot be driven yet are
 * left to whoever watches the doors later.
 */
export function lockAll(gpio: GpioLines, lines: readonly GpioLine[], log: Log): void {
  for (const { name } of lines) {
    if (!name.endsWith('_lock') || gpio.read(name) === 0) continue
    if (gpio.write(name, 0)) log.warn({ line: name }, 'a lock was left unlocked: it is locked')
  }
}
