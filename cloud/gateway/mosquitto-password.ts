import { pbkdf2Sync } from 'node:crypto'
import type { Random } from '../../protocol/model/runtime.ts'

const ITERATIONS = 101
const SALT_BYTES = 12
const HASH_BYTES = 64

/** A line of Mosquitto's password file, as `mosquitto_passwd` writes it: `$7$` is PBKDF2 with SHA-512. */
export function mosquittoLine(user: string, password: string, random: Random): string {
  const salt = Buffer.from(random.bytes(SALT_BYTES))
  const hash = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, 'sha512')
  return `${user}:$7$${ITERATIONS}$${salt.toString('base64')}$${hash.toString('base64')}`
}
