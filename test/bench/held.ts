import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Linux' control groups, second version and first. */
const ROOTS = ['/sys/fs/cgroup', '/sys/fs/cgroup/cpu'] as const
const PERIOD_US = 100_000

/** A group of processes that may use only a part of the processor. */
export interface Held {
  /** A command that runs in the group from its first instruction on. */
  command: (command: readonly string[]) => string[]
  remove: () => void
}

/**
 * Restricts processes to `cores` of the processor (0.1 is a tenth of one core).
 *
 * @returns undefined if the user may not do this, or the system has no control groups
 */
export function holdTo(cores: number): Held | undefined {
  const root = ROOTS.find((path) => controls(path))
  if (root === undefined) return undefined
  const folder = join(root, `larder-bench-${process.pid}`)
  const quota = String(Math.round(cores * PERIOD_US))
  try {
    mkdirSync(folder)
    if (existsSync(join(folder, 'cpu.max'))) writeFileSync(join(folder, 'cpu.max'), `${quota} ${PERIOD_US}`)
    else {
      writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US))
      writeFileSync(join(folder, 'cpu.cfs_quota_us'), quota)
    }
  } catch {
    if (existsSync(folder)) rmdirSync(folder)
    return undefined
  }
  const enter = `echo $$ > '${join(folder, 'cgroup.procs')}'; exec "$@"`
  return {
    command: (command) => ['/bin/sh', '-c', enter, 'held', ...command],
    remove: () => rmdirSync(folder),
  }
}

function controls(root: string): boolean {
  if (existsSync(join(root, 'cpu.cfs_quota_us'))) return true
  const controllers = join(root, 'cgroup.subtree_control')
  return existsSync(controllers) && readFileSync(controllers, 'utf8').split(/\s/).includes('cpu')
}
