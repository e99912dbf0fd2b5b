import { sysfsAvailability } from '../../simulator/mounts/gpio/mounted-command.ts'
import { needs } from './services.ts'

/** A test that needs `/dev/fuse` and a mount namespace. */
export const fuse = needs('fuse', () => {
  const found = sysfsAvailability()
  return found.available ? undefined : `no FUSE mount in a namespace: ${found.reason}`
})
