import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { backoffMs } from '../../protocol/model/backoff.ts'
import type { Cancel, Runtime } from '../../protocol/model/runtime.ts'
import { dyingWithParent } from '../mounts/gpio/dying-with-parent.ts'

export interface Program<Name extends string> {
  name: Name
  /** The program and its arguments. */
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Where what it writes is appended. */
  logFile: string
  /** It says by `{type: 'started', pid}` under which process id the program proper runs. */
  reportsPid?: boolean
}

export interface SupervisorOptions<Name extends string> {
  programs: readonly Program<Name>[]
  runtime: Runtime
  /** Each time that a program was started. */
  onStarted(name: Name, pid: number): void
  /** Each time that a program died by itself: how, and after how many starts. */
  onDied(name: Name, how: string, starts: number): void
}

export interface Supervisor {
  start(): void
  /** Ends every program: SIGTERM, and SIGKILL for those that need longer than five seconds. */
  stop(): Promise<void>
}

const restart = { firstMs: 100, maxMs: 5000 }
/** A program that lived so long is started again at once. */
const HEALTHY_MS = 10_000
const KILL_AFTER_MS = 5000

/** Keeps programs running as processes of their own, until stopped. */
export function createSupervisor<Name extends string>(options: SupervisorOptions<Name>): Supervisor {
  const { programs, runtime } = options
  const { clock, random } = runtime
  const children = new Set<ChildProcess>()
  const prefix = dyingWithParent()
  const restarts = new Map<Name, Cancel>()
  let isStopping = false

  function run(program: Program<Name>, attempt: number, starts: number): void {
    const command = [...prefix, ...program.command]
    const output = openSync(program.logFile, 'a')
    const startedAt = clock.monotonic()
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, ...program.environment },
      // Ctrl-C in a terminal is for this process alone, which then ends the others in order.
      detached: true,
    })
    closeSync(output)
    children.add(child)
    if (program.reportsPid)
      child.on('message', (message) => {
        const { type, pid } = message as { type?: unknown; pid?: unknown }
        if (type === 'started' && typeof pid === 'number') options.onStarted(program.name, pid)
      })
    else if (child.pid !== undefined) options.onStarted(program.name, child.pid)

    let ended = false
    const end = (how: string) => {
      if (ended) return
      ended = true
      children.delete(child)
      if (isStopping) return
      options.onDied(program.name, how, starts)
      const next = clock.monotonic() - startedAt >= HEALTHY_MS ? 0 : attempt + 1
      const delayMs = next === 0 ? 0 : backoffMs(next - 1, restart, random)
      restarts.set(
        program.name,
        clock.after(delayMs, () => run(program, next, starts + 1)),
      )
    }
    child.once('error', (error) => end(error.message))
    child.once('exit', (code, signal) => end(signal ?? `exit status ${code}`))
  }

  return {
    start() {
      for (const program of programs) run(program, 0, 1)
    },
    async stop() {
      isStopping = true
      for (const cancel of restarts.values()) cancel()
      const left = [...children]
      const exits = left.map((child) => new Promise((resolve) => child.once('exit', resolve)))
      for (const child of left) child.kill('SIGTERM')
      const cancel = clock.after(KILL_AFTER_MS, () => {
        for (const child of children) child.kill('SIGKILL')
      })
      await Promise.all(exits)
      cancel()
    },
  }
}
