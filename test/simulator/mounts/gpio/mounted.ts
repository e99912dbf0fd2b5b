import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { formatGpioAddress } from '../../../../protocol/gpio/socket.ts'
import type { GpioLine } from '../../../../protocol/model/hardware.ts'
import { silentLog } from '../../../../protocol/model/log.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { sysfsAvailability } from '../../../../simulator/mounts/gpio/mounted-command.ts'
import { startGpioSocketServer } from '../../../../simulator/mounts/gpio/socket-server.ts'
import { createGpioBank, type GpioBank } from '../../../../simulator/physics/gpio-bank.ts'
import { commandOf } from '../../../support/programs.ts'

export const chipLines: GpioLine[] = [
  { name: 'main_lock', offset: 17, direction: 'out', activeLow: false },
  { name: 'main_door', offset: 27, direction: 'in', activeLow: false },
  { name: 'fridge_1_left_lock', offset: 5, direction: 'out', activeLow: true },
  { name: 'fridge_1_left_door', offset: 6, direction: 'in', activeLow: true },
]
export const chipLabel = 'pinctrl-bcm2711'

const root = join(import.meta.dirname, '../../../..')

/** A program in its own mount namespace, over the lines of `bank`. */
export interface Mounted {
  bank: GpioBank
  process: ChildProcess
  /** Messages of the program, one JSON object per line. */
  next(): Promise<Record<string, unknown>>
  send(message: object): void
  /** Restarts the program over the same lines. */
  again(): Promise<Mounted>
  pid(): Promise<number>
}

export interface Bench {
  mount(program: string, args: string[], base: number): Promise<Mounted>
  end(): Promise<void>
}

/** Starts compiled programs, by their names in this repository, under `sysfs-main`, and ends them all. */
export function createBench(): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'larder-sysfs-'))
  const hardwareFile = join(folder, 'hardware.json')
  const endings: (() => Promise<void>)[] = []
  writeFileSync(
    hardwareFile,
    JSON.stringify({
      hubId: 1,
      controllers: [{ id: 'bins', port: '/dev/null', devices: [{ kind: 'bin', number: 1 }] }],
      gpio: { chipLabel, lines: chipLines },
    }),
  )

  async function start(bank: GpioBank, address: string, program: string, args: string[], base: number) {
    const found = sysfsAvailability()
    if (!found.available) throw new Error(found.reason)
    const mount = commandOf('simulator/mounts/gpio/sysfs-main')
    const options = ['--socket', address, '--hardware', hardwareFile, '--base', String(base), '--']
    const command = [...found.prefix, ...mount, ...options, ...commandOf(program), hardwareFile, ...args]
    const child = spawn(command[0]!, command.slice(1), {
      cwd: root,
      env: { ...process.env, LOG_LEVEL: 'warn' },
      stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
    })
    const pid = new Promise<number>((resolve) =>
      child.once('message', (message) => resolve((message as { pid: number }).pid)),
    )
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    endings.push(async () => {
      child.kill('SIGKILL')
      await exited
    })
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
    const mounted: Mounted = {
      bank,
      process: child,
      pid: () => pid,
      async next() {
        const { value, done } = await lines.next()
        if (done) throw new Error('the program has ended')
        return JSON.parse(value) as Record<string, unknown>
      },
      send: (message) => void child.stdin!.write(`${JSON.stringify(message)}\n`),
      again: () => start(bank, address, program, args, base),
    }
    await mounted.next()
    return mounted
  }

  return {
    async mount(program, args, base) {
      const bank = createGpioBank(chipLines)
      const server = await startGpioSocketServer({
        bank,
        address: { path: join(folder, `gpio-${endings.length}.sock`) },
        clock: systemRuntime().clock,
        log: silentLog,
      })
      endings.push(() => server.close())
      return start(bank, formatGpioAddress(server.address), program, args, base)
    },
    async end() {
      for (const end of endings.splice(0).toReversed()) await end()
      rmSync(folder, { recursive: true })
    },
  }
}
