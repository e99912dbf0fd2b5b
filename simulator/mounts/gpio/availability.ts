import { spawnSync } from 'node:child_process'

/** Makes `/sys/class/gpio` a FUSE mount on descriptor 3 within the mount namespace that it runs in. */
export const mountScript = [
  'mount -t tmpfs tmpfs /sys/class',
  'mkdir /sys/class/gpio',
  'mount -i -t fuse larder-gpio /sys/class/gpio -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other',
].join(' && ')

/**
 * How a sysfs tree can be mounted here: as this user, in a user namespace of its own, or not at all. The prefix goes
 * before the command that runs `sysfs-main`.
 */
export type SysfsAvailability = { available: true; prefix: string[] } | { available: false; reason: string }

/** Tries a mount, in a namespace that is gone again at once. Takes about 20 ms. */
export function sysfsAvailability(): SysfsAvailability {
  let reason = ''
  // The kernel wants the device opened in the user namespace that mounts it.
  for (const prefix of [[], ['unshare', '--user', '--map-root-user']]) {
    const command = [...prefix, 'unshare', '--mount', 'sh', '-c', `exec 3<>/dev/fuse && ${mountScript}`]
    const { status, error, stderr } = spawnSync(command[0]!, command.slice(1), { encoding: 'utf8' })
    if (status === 0) return { available: true, prefix }
    reason = error?.message ?? stderr.trim().split('\n').at(-1) ?? ''
  }
  return { available: false, reason }
}
