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
  /** Where what it writes is appended. */
  logFile: string
  /** It says by `{type: 'started', pid}` under which process id the program proper runs. */
  reportsPid?: boolean
}

export interface SupervisorOptions<Name extends string> {
  programs: readonly Program<Name>[]
  runtime: Runtime
  /** For all of them, over this process's own and under each program's. */
  environment?: Readonly<Record<string, string>>
  /** Each time that a program was started. */
  onStarted(name: Name, pid: number): void
  /** Each time that a program died by itself: how, and after how many starts. */
  onDied(name: Name, how: string, starts: number): void
}

export interface Supervisor<Name extends string = string> {
  start(): void
  stateOf(name: Name): ProgramState
  /**
   * Ends one program: SIGTERM, and SIGKILL after `killAfterMs`. It stays ended until `resume`. True where it took SIGKILL.
   */
  halt(name: Name, killAfterMs: number): Promise<boolean>
  /** Starts a program that was halted, and has it kept running again; nothing where it is. */
  resume(name: Name): void
  /** Ends every program: SIGTERM, and SIGKILL for those that need longer than five seconds. */
  stop(): Promise<void>
}

const restart = { firstMs: 100, maxMs: 5000 }
/** A program that lived so long is started again at once. */
const HEALTHY_MS = 10_000
const KILL_AFTER_MS = 5000

/** Keeps programs running as processes of their own, until stopped. */
export function createSupervisor<Name extends string>(options: SupervisorOptions<Name>): Supervisor<Name> {
  const { programs, runtime } = options
  const { clock, random } = runtime
  const children = new Map<Name, Running>()
  const prefix = dyingWithParent()
  const restarts = new Map<Name, Cancel>()
  const halted = new Set<Name>()
  let isStopping = false

  function run(program: Program<Name>, attempt: number, starts: number): void {
    const command = [...prefix, ...program.command]
    const output = openSync(program.logFile, 'a')
    const startedAt = clock.monotonic()
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, ...options.environment, ...program.environment },
      // Ctrl-C in a terminal is for this process alone, which then ends the others in order.
      detached: true,
    })
    closeSync(output)
    const running: Running = { child, pid: program.reportsPid ? undefined : child.pid }
    children.set(program.name, running)
    if (program.reportsPid)
      child.on('message', (message) => {
        const { type, pid } = message as { type?: unknown; pid?: unknown }
        if (type !== 'started' || typeof pid !== 'number') return
        running.pid = pid
        options.onStarted(program.name, pid)
      })
    else if (child.pid !== undefined) options.onStarted(program.name, child.pid)

    let ended = false
    const end = (how: string) => {
      if (ended) return
      ended = true
      if (children.get(program.name) === running) children.delete(program.name)
      if (isStopping || halted.has(program.name)) return
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

  /** Ends a program: asked, and by force where it does not end in time. */
  async function end(running: Running, killAfterMs: number): Promise<boolean> {
    const { child } = running
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    // One that was stopped hears nothing before it is continued; service managers do so too.
    for (const pid of pidsOf(running)) signal(pid, 'SIGCONT')
    let isForced = false
    const cancel = clock.after(killAfterMs, () => {
      isForced = true
      // The program proper first: nothing of it may be left behind when what runs it has ended.
      for (const pid of pidsOf(running)) signal(pid, 'SIGKILL')
    })
    await exit
    cancel()
    return isForced
  }

  return {
    start() {
      for (const program of programs) run(program, 0, 1)
    },
    stateOf(name) {
      const running = children.get(name)
      return running ? { state: 'running', pid: running.pid ?? null } : { state: 'stopped', pid: null }
    },
    async halt(name, killAfterMs) {
      halted.add(name)
      restarts.get(name)?.()
      const running = children.get(name)
      return running ? end(running, killAfterMs) : false
    },
    resume(name) {
      const program = programs.find((each) => each.name === name)
      if (!halted.delete(name) || !program || children.has(name) || isStopping) return
      run(program, 0, 1)
    },
    async stop() {
      isStopping = true
      for (const cancel of restarts.values()) cancel()
      await Promise.all([...children.values()].map((running) => end(running, KILL_AFTER_MS)))
    },
  }
}

interface Running {
  child: ChildProcess
  /** Of the program proper, where its starter has said so. */
  pid: number | undefined
}

/** The program proper first, then what runs it. */
const pidsOf = ({ child, pid }: Running): number[] => [
  ...new Set([pid, child.pid].filter((each) => each !== undefined)),
]

/** It may have ended by itself meanwhile. */
function signal(pid: number, name: 'SIGCONT' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
