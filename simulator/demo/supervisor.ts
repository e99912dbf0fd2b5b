import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { ProgramState } from '../../protocol/management/supervisor.ts'
import { backoffMs, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import { dyingWithParent } from '../mounts/gpio/mounted-command.ts'

export interface Program<Name extends string> {
  name: Name
  /** The program and its arguments. */
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Its output is appended to this file. */
  logFile: string
  /** It reports the process id of the actual program by `{type: 'started', pid}`. */
  reportsPid?: boolean
}

export interface SupervisorOptions<Name extends string> {
  programs: readonly Program<Name>[]
  runtime: Runtime
  /** For all programs; it overrides this process's environment, and a program's own overrides it. */
  environment?: Readonly<Record<string, string>>
  /** Called each time a program was started. */
  onStarted(name: Name, pid: number): void
  /** Called each time a program ended without a request, with the way in which it ended and the number of its starts. */
  onDied(name: Name, how: string, starts: number): void
}

const restart = { firstMs: 100, maxMs: 5000 }
/** A program that ran for this long is restarted at once. */
const HEALTHY_MS = 10_000
const KILL_AFTER_MS = 5000

/** Keeps programs running as processes of their own, until stopped. */
export class Supervisor<Name extends string = string> {
  readonly #options: SupervisorOptions<Name>
  readonly #children = new Map<Name, Running>()
  readonly #prefix = dyingWithParent()
  readonly #restarts = new Map<Name, Cancel>()
  readonly #halted = new Set<Name>()
  #isStopping = false

  constructor(options: SupervisorOptions<Name>) {
    this.#options = options
  }

  start(): void {
    for (const program of this.#options.programs) this.#run(program, 0, 1)
  }

  stateOf(name: Name): ProgramState {
    const running = this.#children.get(name)
    return running ? { state: 'running', pid: running.pid ?? null } : { state: 'stopped', pid: null }
  }

  /**
   * Ends one program: SIGTERM, and SIGKILL after `killAfterMs`. It stays ended until `resume`. True if SIGKILL was necessary.
   */
  async halt(name: Name, killAfterMs: number): Promise<boolean> {
    this.#halted.add(name)
    this.#restarts.get(name)?.()
    const running = this.#children.get(name)
    return running ? this.#end(running, killAfterMs) : false
  }

  /** Starts a program that was halted, and keeps it running again. Does nothing if it runs. */
  resume(name: Name): void {
    const program = this.#options.programs.find((each) => each.name === name)
    if (!this.#halted.delete(name) || !program || this.#children.has(name) || this.#isStopping) return
    this.#run(program, 0, 1)
  }

  /** Ends every program with SIGTERM, after five seconds with SIGKILL. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const cancel of this.#restarts.values()) cancel()
    await Promise.all([...this.#children.values()].map((running) => this.#end(running, KILL_AFTER_MS)))
  }

  #run(program: Program<Name>, attempt: number, starts: number): void {
    const { clock, random } = this.#options.runtime
    const command = [...this.#prefix, ...program.command]
    const output = openSync(program.logFile, 'a')
    const startedAt = clock.monotonic()
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, ...this.#options.environment, ...program.environment },
      // Ctrl-C in a terminal is for this process only, which then ends the others in order.
      detached: true,
    })
    closeSync(output)
    const running: Running = { child, pid: program.reportsPid ? undefined : child.pid }
    this.#children.set(program.name, running)
    if (program.reportsPid)
      child.on('message', (message) => {
        const { type, pid } = message as { type?: unknown; pid?: unknown }
        if (type !== 'started' || typeof pid !== 'number') return
        running.pid = pid
        this.#options.onStarted(program.name, pid)
      })
    else if (child.pid !== undefined) this.#options.onStarted(program.name, child.pid)

    let hasEnded = false
    const onEnd = (how: string): void => {
      if (hasEnded) return
      hasEnded = true
      if (this.#children.get(program.name) === running) this.#children.delete(program.name)
      if (this.#isStopping || this.#halted.has(program.name)) return
      this.#options.onDied(program.name, how, starts)
      const next = clock.monotonic() - startedAt >= HEALTHY_MS ? 0 : attempt + 1
      const delayMs = next === 0 ? 0 : backoffMs(next - 1, restart, random)
      this.#restarts.set(
        program.name,
        clock.after(delayMs, () => this.#run(program, next, starts + 1)),
      )
    }
    child.once('error', (error) => onEnd(error.message))
    child.once('exit', (code, signal) => onEnd(signal ?? `exit status ${code}`))
  }

  /** Ends a program with SIGTERM, and with SIGKILL if it does not end in time. Returns whether SIGKILL was necessary. */
  async #end(running: Running, killAfterMs: number): Promise<boolean> {
    const { child } = running
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    // A suspended process receives no signal before it continues; service managers do the same.
    for (const pid of pidsOf(running)) signal(pid, 'SIGCONT')
    let isForced = false
    const cancel = this.#options.runtime.clock.after(killAfterMs, () => {
      isForced = true
      // The actual program first: it must not survive its starter.
      for (const pid of pidsOf(running)) signal(pid, 'SIGKILL')
    })
    await exit
    cancel()
    return isForced
  }
}

interface Running {
  child: ChildProcess
  /** Process id of the actual program, if its starter has reported it. */
  pid: number | undefined
}

/** The actual program first, then its starter. */
const pidsOf = ({ child, pid }: Running): number[] => [
  ...new Set([pid, child.pid].filter((each) => each !== undefined)),
]

/** Sends a signal to a process, which may have ended. */
function signal(pid: number, name: 'SIGCONT' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
