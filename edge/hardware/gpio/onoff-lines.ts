import { closeSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Gpio } from 'onoff'
import { Watchers } from '../../../protocol/gpio/watchers.ts'
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

/**
 * The number of the first pin of the chip with this label; it differs between kernels. Undefined if there is
 * no such chip.
 */
export function findChipBase(label: string, root: string = SYSFS): number | undefined {
  if (!existsSync(root)) return undefined
  const read = (chip: string, file: string) => readFileSync(join(root, chip, file), 'utf8').trim()
  const chip = readdirSync(root)
    .filter((name) => name.startsWith('gpiochip'))
    .find((name) => read(name, 'label') === label)
  return chip === undefined ? undefined : Number(read(chip, 'base'))
}

/** One open pin. Each call throws if the kernel refuses it. */
export interface Pin {
  read(): Level
  write(level: Level): void
  /** `onEdge` gets an error if the pin can no longer be watched or read. The caller then closes the pin. */
  watch(onEdge: (error: Error | null | undefined) => void): void
  close(): void
}

export type OpenPin = (number: number, line: Pick<GpioLine, 'direction' | 'activeLow'>) => Pin

/**
 * `onoff` itself reads a pin at two places, and catches no error: at the end of its constructor, where the file
 * would stay open, and in a native callback for each edge, where an error would end the process.
 */
class CarefulGpio extends Gpio {
  // `declare`: an initial value here would replace what the constructor of `Gpio` has set.
  declare private readonly _valueFd: number | undefined
  declare private onEdge: Parameters<Pin['watch']>[0] | undefined

  level(): Level {
    return super.readSync()
  }

  /** Only the library calls it. */
  override readSync(): Level {
    try {
      return this.level()
    } catch (error) {
      if (this.onEdge === undefined) {
        this.close()
        throw error
      }
      this.onEdge(error as Error)
      // The pin is closed by now. No listener gets this level.
      return 0
    }
  }

  watchEdges(onEdge: Parameters<Pin['watch']>[0]): void {
    this.onEdge = onEdge
    this.watch(onEdge)
  }

  close(): void {
    try {
      this.unwatchAll()
    } finally {
      // The library closes its descriptor only when it unexports the pin.
      const { _valueFd: descriptor } = this
      if (descriptor !== undefined) closeSync(descriptor)
    }
  }
}

/**
 * A pin through `onoff`. Opening it drives nothing. An existing output keeps its level, whichever process set
 * it; a new output starts inactive. Closing does not unexport the pin, because then other processes could use
 * it.
 */
const openOnoffPin: OpenPin = (number, { direction, activeLow }) => {
  const gpio =
    direction === 'in'
      ? new CarefulGpio(number, 'in', 'both', { activeLow })
      : // `high` and `low` are voltages: this is the inactive one.
        new CarefulGpio(number, activeLow ? 'high' : 'low', 'none', {
          activeLow,
          reconfigureDirection: false,
        })
  try {
    requireSettings(gpio, { direction, activeLow })
  } catch (error) {
    gpio.close()
    throw error
  }
  return {
    read: () => gpio.level(),
    write: (level) => gpio.writeSync(level),
    watch: (onEdge) => gpio.watchEdges(onEdge),
    close: () => gpio.close(),
  }
}

/**
 * `onoff` ignores a setting that the kernel refuses, if the pin was exported before: for example while the rights on its
 * files are not complete yet. A lock would then be driven the wrong way round, or a door would have no edges.
 */
function requireSettings(gpio: Gpio, { direction, activeLow }: Parameters<OpenPin>[1]): void {
  if (gpio.direction() !== direction) throw new Error(`its direction stays ${gpio.direction()}`)
  if (gpio.activeLow() !== activeLow) throw new Error(`its active_low stays ${Number(gpio.activeLow())}`)
  if (direction === 'in' && gpio.edge() !== 'both') throw new Error(`its edge stays ${gpio.edge()}`)
}

export interface OnoffLinesOptions {
  hardware: HardwareDescription['gpio']
  runtime: Runtime
  log: Log
  /** The sysfs folder of the kernel's chips. */
  root?: string
  openPin?: OpenPin
}

const reopen = { firstMs: 500, maxMs: 30_000 }

/**
 * GPIO lines through sysfs and `onoff`. Lines that cannot be opened are retried without end. A line that
 * fails later is closed and reopened; meanwhile it reads as `undefined`. Levels are always read from the pin;
 * an edge only triggers a read.
 */
export class OnoffLines implements GpioLines {
  readonly #options: OnoffLinesOptions
  readonly #root: string
  readonly #openPin: OpenPin
  readonly #open = new Map<string, Pin>()
  readonly #watchers = new Watchers()
  readonly #failures: Map<string, RepeatedLine>
  readonly #chip: RepeatedLine
  #attempt = 0
  #isClosed = false
  #problem: LinesProblem | undefined
  #cancelRetry: Cancel | undefined

  constructor(options: OnoffLinesOptions) {
    this.#options = options
    this.#root = options.root ?? SYSFS
    this.#openPin = options.openPin ?? openOnoffPin
    const { hardware, log, runtime } = options
    const failure = (): RepeatedLine => new RepeatedLine({ log, clock: runtime.clock })
    this.#failures = new Map(hardware.lines.map(({ name }) => [name, failure()]))
    this.#chip = failure()
    this.#openMissing()
  }

  read(name: string): Level | undefined {
    try {
      return this.#open.get(name)?.read()
    } catch (error) {
      this.#failed(name, 'read', error)
      return undefined
    }
  }

  write(name: string, level: Level): boolean {
    const pin = this.#open.get(name)
    if (!pin) return false
    try {
      pin.write(level)
      return true
    } catch (error) {
      this.#failed(name, 'driven', error)
      return false
    }
  }

  watch(name: string, listener: () => void): Cancel {
    return this.#watchers.add(name, listener)
  }

  problem(): LinesProblem | undefined {
    return this.#problem
  }

  close(): void {
    this.#isClosed = true
    this.#cancelRetry?.()
    for (const name of this.#open.keys()) this.#closePin(name)
  }

  #openMissing(): void {
    this.#cancelRetry = undefined
    const missing = this.#options.hardware.lines.filter((line) => !this.#open.has(line.name))
    const base = missing.length > 0 ? this.#findBase() : undefined
    const opened = base === undefined ? [] : missing.filter((line) => this.#openLine(line, base))
    for (const { name } of opened) this.#watchers.notify(name)
    if (opened.length < missing.length) this.#retry()
    else this.#attempt = 0
  }

  #retry(): void {
    if (this.#isClosed) return
    const { clock, random } = this.#options.runtime
    this.#cancelRetry ??= clock.after(backoffMs(this.#attempt, reopen, random), () => this.#openMissing())
    this.#attempt += 1
  }

  #findBase(): number | undefined {
    const root = this.#root
    const label = this.#options.hardware.chipLabel
    this.#problem = undefined
    if (!existsSync(root)) {
      const reason = `this kernel has no ${root}: the hub needs a kernel with GPIO in sysfs (CONFIG_GPIO_SYSFS)`
      return this.#missingChip({ reason, isFinal: true })
    }
    try {
      const base = findChipBase(label, root)
      if (base === undefined)
        return this.#missingChip({ reason: `no GPIO chip is labelled ${label}`, isFinal: false })
      this.#chip.succeeded({ label }, 'the GPIO chip is there')
      return base
    } catch (error) {
      // A chip may disappear between two calls.
      return this.#missingChip({
        reason: `the GPIO chips cannot be read: ${reasonOf(error)}`,
        isFinal: false,
      })
    }
  }

  #missingChip(found: LinesProblem): undefined {
    const { chipLabel: label, lines } = this.#options.hardware
    this.#problem = found
    this.#chip.failed(
      found.reason,
      { label, lines: lines.length },
      `${found.reason}: no lock is driven and no door is seen until there is one`,
      'error',
    )
  }

  #openLine(line: GpioLine, base: number): boolean {
    const { name } = line
    try {
      const pin = this.#openPin(base + line.offset, line)
      this.#open.set(name, pin)
      if (line.direction === 'in')
        pin.watch((error) => {
          if (this.#open.get(name) !== pin) return
          if (error) this.#failed(name, 'watched', error)
          this.#watchers.notify(name)
        })
      this.#failures.get(name)!.succeeded({ line: name }, 'the GPIO line works again')
      return true
    } catch (error) {
      this.#failed(name, 'opened', error)
      return false
    }
  }

  /** Closes a failed line, and reopens it later. */
  #failed(name: string, what: string, error: unknown): void {
    const reason = `it cannot be ${what}: ${reasonOf(error)}`
    this.#failures.get(name)?.failed(reason, { line: name }, 'a GPIO line fails', 'error')
    this.#closePin(name)
    this.#retry()
  }

  #closePin(name: string): void {
    const pin = this.#open.get(name)
    this.#open.delete(name)
    try {
      pin?.close()
    } catch (error) {
      this.#options.log.debug({ line: name, error: reasonOf(error) }, 'a GPIO line cannot be closed')
    }
  }
}
