import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Gpio } from 'onoff'
import { backoffMs, type Cancel, type Runtime } from '../../../protocol/model/runtime.ts'
import type { GpioLines, Level, GpioLine, HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { Log } from '../../../protocol/model/log.ts'

const SYSFS = '/sys/class/gpio'

/** The number of the first pin of the chip with this label; it differs from kernel to kernel. Undefined where there is none. */
export function findChipBase(label: string, root: string = SYSFS): number | undefined {
  if (!existsSync(root)) return undefined
  const read = (chip: string, file: string) => readFileSync(join(root, chip, file), 'utf8').trim()
  const chip = readdirSync(root)
    .filter((name) => name.startsWith('gpiochip'))
    .find((name) => read(name, 'label') === label)
  return chip === undefined ? undefined : Number(read(chip, 'base'))
}

export interface OnoffLinesOptions {
  hardware: HardwareDescription['gpio']
  runtime: Runtime
  log: Log
}

const reopen = { firstMs: 500, maxMs: 30_000 }

/**
 * GPIO lines through sysfs and `onoff`. Opening a line drives nothing: an output that is one already keeps its level,
 * whatever process set it; another begins inactive. Lines that cannot be opened are tried again for ever; until then
 * they read as `undefined`. Levels are always read from the pin, edges only say when.
 */
export function createOnoffLines({ hardware, runtime, log }: OnoffLinesOptions): GpioLines {
  const { clock, random } = runtime
  const open = new Map<string, Gpio>()
  const watchers = new Map<string, (() => void)[]>()
  let attempt = 0
  let hasChip = true
  let cancelRetry: Cancel = () => {}

  openAll()

  function openAll(): void {
    const missing = hardware.lines.filter((line) => !open.has(line.name))
    const base = missing.length > 0 ? findBase() : undefined
    const opened = base === undefined ? [] : missing.filter((line) => openLine(line, base))
    for (const { name } of opened) notify(name)
    if (opened.length < missing.length) {
      cancelRetry = clock.after(backoffMs(attempt, reopen, random), openAll)
      attempt += 1
    } else attempt = 0
  }

  function findBase(): number | undefined {
    const base = findPresentChip()
    if (base === undefined && hasChip)
      log.error(
        { label: hardware.chipLabel, lines: hardware.lines.length },
        `no GPIO chip is labelled ${hardware.chipLabel}: no lock is driven and no door is seen until there is one`,
      )
    hasChip = base !== undefined
    return base
  }

  /** A chip may vanish between two looks at it. */
  function findPresentChip(): number | undefined {
    try {
      return findChipBase(hardware.chipLabel)
    } catch (error) {
      log.warn({ err: error }, 'the GPIO chips cannot be read')
      return undefined
    }
  }

  function openLine({ name, offset, direction, activeLow }: GpioLine, base: number): boolean {
    try {
      const gpio =
        direction === 'in'
          ? new Gpio(base + offset, 'in', 'both', { activeLow })
          : // `high` and `low` are voltages: the inactive one.
            new Gpio(base + offset, activeLow ? 'high' : 'low', 'none', {
              activeLow,
              reconfigureDirection: false,
            })
      if (direction === 'in') gpio.watch(() => notify(name))
      open.set(name, gpio)
      return true
    } catch (error) {
      log.error({ line: name, error: String(error) }, 'a GPIO line cannot be opened')
      return false
    }
  }

  function notify(name: string): void {
    for (const listener of watchers.get(name) ?? []) listener()
  }

  return {
    read(name): Level | undefined {
      try {
        return open.get(name)?.readSync()
      } catch (error) {
        log.error({ line: name, error: String(error) }, 'a GPIO line cannot be read')
        return undefined
      }
    },
    write(name, level) {
      const gpio = open.get(name)
      if (!gpio) return false
      try {
        gpio.writeSync(level)
        return true
      } catch (error) {
        log.error({ line: name, error: String(error) }, 'a GPIO line cannot be driven')
        return false
      }
    },
    watch(name, listener) {
      watchers.set(name, [...(watchers.get(name) ?? []), listener])
    },
    close() {
      cancelRetry()
      // Not unexported: that would let other hands at the pin; the level is kept either way.
      for (const gpio of open.values()) gpio.unwatchAll()
      open.clear()
    },
  }
}
