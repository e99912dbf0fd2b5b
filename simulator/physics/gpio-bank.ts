import type { GpioLines, Level, GpioLine } from '../../protocol/model/hardware.ts'

/** Who moved a line. The hub drives outputs; the world moves sensors and removes outputs' power. */
type GpioCause = 'hub' | 'world'
type GpioListener = (name: string, level: Level, cause: GpioCause) => void

/**
 * The lines of a simulated hub's GPIO chip. Levels are logical (1 = unlocked, open); mounts that show a pin's voltage
 * apply the line's `activeLow`. A line starts at 0: locked, closed.
 */
export interface GpioBank {
  readonly lines: readonly GpioLine[]
  /** The present level. Throws for a name that the hardware does not describe. */
  get(name: string): Level
  levels(): Record<string, Level>
  /** For the hub: drives an output. Returns false if there is no such output. */
  drive(name: string, level: Level): boolean
  /** For the world: moves a sensor, or an output that lost power. Throws for an unknown name. */
  set(name: string, level: Level): void
  /** Calls `listener` after each change of level; returns a function that removes it. */
  onChange(listener: GpioListener): () => void
  /**
   * The lines for a hub in the same process. `deliver` runs the calls of watchers. Pass a clock's `after(0, …)` if a
   * watcher must not run within the physics that moved the line.
   */
  asLines(deliver?: (task: () => void) => void): GpioLines
}

export function createGpioBank(lines: readonly GpioLine[]): GpioBank {
  const levels = new Map<string, Level>(lines.map((line) => [line.name, 0]))
  const outputs = new Set(lines.filter((line) => line.direction === 'out').map((line) => line.name))
  const listeners = new Set<GpioListener>()

  function move(name: string, level: Level, cause: GpioCause): void {
    if (levels.get(name) === level) return
    levels.set(name, level)
    for (const listener of listeners) listener(name, level, cause)
  }

  function get(name: string): Level {
    const level = levels.get(name)
    if (level === undefined) throw new RangeError(`no GPIO line ${name}`)
    return level
  }

  function drive(name: string, level: Level): boolean {
    if (!outputs.has(name)) return false
    move(name, level, 'hub')
    return true
  }

  function onChange(listener: GpioListener): () => void {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  return {
    lines,
    get,
    levels: () => Object.fromEntries(levels),
    drive,
    set(name, level) {
      get(name)
      move(name, level, 'world')
    },
    onChange,
    asLines(deliver = (task) => task()) {
      const removals: (() => void)[] = []
      let open = true
      return {
        read: (name) => (open ? levels.get(name) : undefined),
        write: (name, level) => open && drive(name, level),
        watch(name, listener) {
          if (!levels.has(name) || outputs.has(name)) return () => {}
          const remove = onChange((changed) => {
            if (changed === name) deliver(() => void (open && listener()))
          })
          removals.push(remove)
          return remove
        },
        close() {
          open = false
          for (const remove of removals) remove()
        },
      }
    },
  }
}
