import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { Supervisor, type Program } from '../../../simulator/demo/supervisor.ts'
import type { ProgramName } from './plant-settings.ts'

export interface SupervisedOptions {
  runtime: Runtime
  programs: readonly Program<ProgramName>[]
  /** The command of a program, read at each start (default: its own). */
  commandOf?: (name: ProgramName) => readonly string[] | undefined
  /** Called when a program ended, for whatever reason. */
  onEnded?(name: ProgramName): void
  /** Called when a program ended without a kill, with its exit and its log file. */
  onFailure: (name: ProgramName, how: string, logFile: string) => void
}

/** Programs of their own processes, each restarted by a supervisor. */
export interface Supervised {
  readonly programs: readonly ProgramName[]
  /** Starts one program, or all programs. */
  start(name?: ProgramName): void
  /** Sends SIGKILL; the supervisor restarts the program. Returns false if it is not running. */
  kill(name: ProgramName): boolean
  /** Sends SIGKILL, and keeps the program dead until `start`. */
  halt(name: ProgramName): Promise<void>
  /** Sends SIGTERM, and keeps the program dead until `start`. */
  stop(name: ProgramName): Promise<void>
  signal(name: ProgramName, signal: 'SIGSTOP' | 'SIGCONT' | 'SIGHUP'): void
}

export function supervise(options: SupervisedOptions): Supervised {
  const { runtime, programs } = options
  const supervisors = new Map<ProgramName, Supervisor>()
  const pids = new Map<ProgramName, number>()
  const killed = new Set<number>()

  function start(one: Program<ProgramName>): void {
    if (supervisors.has(one.name)) return
    const supervisor = new Supervisor<ProgramName>({
      programs: [{ ...one, command: options.commandOf?.(one.name) ?? one.command }],
      runtime,
      onStarted: (name, pid) => pids.set(name, pid),
      onDied(name, how) {
        const pid = pids.get(name)
        pids.delete(name)
        options.onEnded?.(name)
        if (pid === undefined || !killed.has(pid)) options.onFailure(name, how, one.logFile)
      },
    })
    supervisors.set(one.name, supervisor)
    supervisor.start()
  }

  function kill(name: ProgramName): boolean {
    const pid = pids.get(name)
    if (pid === undefined || killed.has(pid)) return false
    killed.add(pid)
    return process.kill(pid, 'SIGKILL')
  }

  async function stop(name: ProgramName): Promise<void> {
    const supervisor = supervisors.get(name)
    supervisors.delete(name)
    await supervisor?.stop()
    pids.delete(name)
  }

  return {
    programs: programs.map(({ name }) => name),
    start(name) {
      for (const one of programs) if (name === undefined || one.name === name) start(one)
    },
    kill,
    async halt(name) {
      kill(name)
      await stop(name)
    },
    stop,
    signal: (name, signal) => void process.kill(pids.get(name)!, signal),
  }
}

/** The file with the shift of a program's wall clock (`skewed-clock.ts`). */
export const skewFile = (folder: string, name: ProgramName): string => join(folder, `${name}.skew`)

/** Shifts the wall clock of a program. A rename, so that a reader sees either the old or the new file. */
export function writeSkew(folder: string, name: ProgramName, byMs: number): void {
  const path = skewFile(folder, name)
  writeFileSync(`${path}.new`, String(byMs))
  renameSync(`${path}.new`, path)
}
