import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import type { Readable } from 'node:stream'

/**
 * Starts a command in its own mount namespace, in which the reader of `descriptor` serves `/sys/class/gpio`. Each
 * program before the command replaces itself, so that the child's process id is the command's. `onMounted` is called
 * when the tree can be served, before the command begins. The command is killed when this process dies.
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
    // A terminal's Ctrl-C then reaches the command only once, through this process.
    detached: true,
  })
  const mounted = child.stdio[4] as Readable
  mounted.once('data', options.onMounted)
  mounted.on('error', () => {})
  return child
}

/** Makes `/sys/class/gpio` a FUSE mount on descriptor 3 within its mount namespace. */
const mountScript = [
  'mount -t tmpfs tmpfs /sys/class',
  'mkdir /sys/class/gpio',
  'mount -i -t fuse larder-gpio /sys/class/gpio -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other',
].join(' && ')

/**
 * How this machine can mount a sysfs tree: as this user, in a user namespace, or not at all. The prefix goes before the
 * command that runs `sysfs-main`.
 */
type SysfsAvailability = { available: true; prefix: string[] } | { available: false; reason: string }

/** Tries a mount in a temporary namespace. Takes about 20 ms. */
export function sysfsAvailability(): SysfsAvailability {
  let reason = ''
  // The kernel requires that the mounting user namespace opens the device.
  for (const prefix of [[], ['unshare', '--user', '--map-root-user']]) {
    const command = [...prefix, 'unshare', '--mount', 'sh', '-c', `exec 3<>/dev/fuse && ${mountScript}`]
    const { status, error, stderr } = spawnSync(command[0]!, command.slice(1), { encoding: 'utf8' })
    if (status === 0) return { available: true, prefix }
    reason = error?.message ?? stderr.trim().split('\n').at(-1) ?? ''
  }
  return { available: false, reason }
}

/**
 * The prefix of a command that is killed when this process dies, even by SIGKILL: `setpriv` of util-linux 2.33 on
 * Linux. On other systems it is empty, and a program notices only the closed IPC channel.
 */
export function dyingWithParent(): string[] {
  const prefix = ['setpriv', '--pdeathsig', 'KILL']
  return spawnSync(prefix[0]!, [...prefix.slice(1), 'true']).status === 0 ? prefix : []
}
