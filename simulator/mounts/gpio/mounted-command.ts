import { spawn, type ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { mountScript } from './availability.ts'
import { dyingWithParent } from './dying-with-parent.ts'

/**
 * Starts a command in a mount namespace of its own in which `/sys/class/gpio` is served by whoever reads `descriptor`.
 * Every program before it replaces itself, so that the child's process id is the command's. `onMounted` is called when
 * the tree can be served, before the command itself begins. The command is killed when this process dies.
 */
export function startMountedCommand(options: {
  command: readonly string[]
  descriptor: number
  onMounted: () => void
}): ChildProcess {
  const script = [mountScript, 'echo mounted >&4', 'exec 3>&- 4>&-', 'exec "$@"'].join(' && ')
  const args = ['--mount', 'sh', '-c', script, 'sh', ...dyingWithParent(), ...options.command]
  const child = spawn('unshare', args, {
    stdio: ['inherit', 'inherit', 'inherit', options.descriptor, 'pipe'],
    // A terminal's Ctrl-C comes once, by way of this process.
    detached: true,
  })
  const mounted = child.stdio[4] as Readable
  mounted.once('data', options.onMounted)
  mounted.on('error', () => {})
  return child
}
