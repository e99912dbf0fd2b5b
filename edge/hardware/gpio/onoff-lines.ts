import { closeSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Gpio } from 'onoff'
import { backoffMs, type Cancel, type Runtime } from '../../../protocol/model/runtime.ts'
import type {
  GpioLine,
  GpioLines,
  HardwareDescription,
  Level,
  LinesProblem,
} from '../../../protocol/model/hardware.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { reasonOf, RepeatedLine } from '../../../protocol/model/repeated-lines.ts'

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

/** One pin that is open. Each call throws if the kernel refuses it. */
export interface Pin {
  read(): Level
  write(level: Level): void
  /** `onEdge` gets an error if the pin cannot be watched any more. */
  watch(onEdge: (error: Error | null | undefined) => void): void
  close(): void
}

export type OpenPin = (number: number, line: Pick<GpioLine, 'direction' | 'activeLow'>) => Pin

/**
 * A pin through `onoff`. Opening it drives nothing: an output that is one already keeps its level, whatever process set it;
 * another begins inactive. Closing it does not unexport it: that would let other hands at the pin.
 */
const openOnoffPin: OpenPin = (number, { direction, activeLow }) => {
  const gpio =
    direction === 'in'
      ? new Gpio(number, 'in', 'both', { activeLow })
      : // `high` and `low` are voltages: the inactive one.
        new Gpio(number, activeLow ? 'high' : 'low', 'none', { activeLow, reconfigureDirection: false })
  return {
    read: () => gpio.readSync(),
    write: (level) => gpio.writeSync(level),
    watch: (onEdge) => gpio.watch(onEdge),
    close() {
      gpio.unwatchAll()
      // The library closes its descriptor only together with unexporting the pin.
      const { _valueFd: descriptor } = gpio as unknown as { _valueFd?: number }
      if (descriptor !== undefined) closeSync(descriptor)
    },
  }
}

export interface OnoffLinesOptions {
  hardware: HardwareDescription['gpio']
  runtime: Runtime
  log: Log
  /** Where the kernel shows its chips. */
  root?: string
  openPin?: OpenPin
}

const reopen = { firstMs: 500, maxMs: 30_000 }

/**
 * GPIO lines through sysfs and `onoff`. Lines that cannot be opened are tried again for ever, and a line that fails later is
 * closed and opened again: until then they read as `undefined`. Levels are always read from the pin, edges only say when.
 */
export function createOnoffLines(options: OnoffLinesOptions): GpioLines {
  const { hardware, runtime, log, root = SYSFS, openPin = openOnoffPin } = options
  const { clock, random } = runtime
  const open = new Map<string, Pin>()
  const watchers = new Map<string, (() => void)[]>()
  const failures = new Map(hardware.lines.map(({ name }) => [name, new RepeatedLine({ log, clock })]))
  const chip = new RepeatedLine({ log, clock })
  let attempt = 0
  let isClosed = false
  let problem: LinesProblem | undefined
  let cancelRetry: Cancel | undefined

  openMissing()

  function openMissing(): void {
    cancelRetry = undefined
    const missing = hardware.lines.filter((line) => !open.has(line.name))
    const base = missing.length > 0 ? findBase() : undefined
    const opened = base === undefined ? [] : missing.filter((line) => openLine(line, base))
    for (const { name } of opened) notify(name)
    if (opened.length < missing.length) retry()
    else attempt = 0
  }

  function retry(): void {
    if (isClosed) return
    cancelRetry ??= clock.after(backoffMs(attempt, reopen, random), openMissing)
    attempt += 1
  }

  function findBase(): number | undefined {
    problem = undefined
    if (!existsSync(root)) {
      const reason = `this kernel has no ${root}: the hub needs a kernel with GPIO in sysfs (CONFIG_GPIO_SYSFS)`
      return missingChip({ reason, isFinal: true })
    }
    try {
      const base = findChipBase(hardware.chipLabel, root)
      if (base === undefined)
        return missingChip({ reason: `no GPIO chip is labelled ${hardware.chipLabel}`, isFinal: false })
      chip.succeeded({ label: hardware.chipLabel }, 'the GPIO chip is there')
      return base
    } catch (error) {
      // A chip may vanish between two looks at it.
      return missingChip({ reason: `the GPIO chips cannot be read: ${reasonOf(error)}`, isFinal: false })
    }
  }

  function missingChip(found: LinesProblem): undefined {
    problem = found
    chip.failed(
      found.reason,
      { label: hardware.chipLabel, lines: hardware.lines.length },
      `${found.reason}: no lock is driven and no door is seen until there is one`,
      'error',
    )
  }

  function openLine(line: GpioLine, base: number): boolean {
    const { name } = line
    try {
      const pin = openPin(base + line.offset, line)
      open.set(name, pin)
      if (line.direction === 'in')
        pin.watch((error) => {
          if (open.get(name) !== pin) return
          if (error) failed(name, 'watched', error)
          notify(name)
        })
      failures.get(name)!.succeeded({ line: name }, 'the GPIO line works again')
      return true
    } catch (error) {
      failed(name, 'opened', error)
      return false
    }
  }

  /** A line that fails once is closed, and opened again after a while. */
  function failed(name: string, what: string, error: unknown): void {
    const reason = `it cannot be ${what}: ${reasonOf(error)}`
    failures.get(name)?.failed(reason, { line: name }, 'a GPIO line fails', 'error')
    const pin = open.get(name)
    open.delete(name)
    try {
      pin?.close()
    } catch (closing) {
      log.debug({ line: name, error: reasonOf(closing) }, 'a GPIO line cannot be closed')
    }
    retry()
  }

  function notify(name: string): void {
    for (const listener of watchers.get(name) ?? []) listener()
  }

  return {
    read(name): Level | undefined {
      try {
        return open.get(name)?.read()
      } catch (error) {
        failed(name, 'read', error)
        return undefined
      }
    },
    write(name, level) {
      const pin = open.get(name)
      if (!pin) return false
      try {
        pin.write(level)
        return true
      } catch (error) {
        failed(name, 'driven', error)
        return false
      }
    },
    watch(name, listener) {
      watchers.set(name, [...(watchers.get(name) ?? []), listener])
    },
    problem: () => problem,
    close() {
      isClosed = true
      cancelRetry?.()
      for (const pin of open.values()) pin.close()
      open.clear()
    },
  }
}
