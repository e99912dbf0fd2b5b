import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Runs a step once for all workers of a run; the run's temporary folder identifies it. If the step fails, it throws in every worker:
 * none uses the files of a former run.
 */
export function once(name: string, step: () => void): void {
  const ended = join(tmpdir(), name)
  if (isFirst(ended)) {
    writeFileSync(`${ended}.draft`, failureOf(step))
    renameSync(`${ended}.draft`, ended)
  } else while (!existsSync(ended)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  const failure = readFileSync(ended, 'utf8')
  if (failure !== '') throw new Error(failure)
}

/** Whether a worker of this run has done a step. Programs that a test starts use its files, too. */
export function isDone(name: string): boolean {
  const ended = join(tmpdir(), name)
  return existsSync(ended) && readFileSync(ended, 'utf8') === ''
}

function isFirst(ended: string): boolean {
  try {
    mkdirSync(`${ended}.begun`)
    return true
  } catch {
    return false
  }
}

/** The message of the step's error; empty if it succeeds. */
function failureOf(step: () => void): string {
  try {
    step()
    return ''
  } catch (error) {
    return String(error)
  }
}
