import { MqttClient } from 'mqtt'
import type { Clock, Random } from '../../protocol/model/runtime.ts'
import { openBrokerSocket } from '../../protocol/mqtt/broker-socket.ts'
import { socketOptions } from './broker-external.ts'
import { pbkdf2Sync } from 'node:crypto'

const TIMEOUT_MS = 5000
/** MQTT 3.1.1 §3.2.2.3: identifier rejected, bad user name or password, not authorized. */
const REFUSALS = [2, 4, 5]

/**
 * Whether a broker accepts a hub's password. The connection uses the hub's client id. So, if the broker accepts the
 * password, it briefly ends the hub's own connection.
 */
export function tryLogin(
  { url, ca, user, password }: { url: string; ca: string | undefined; user: string; password: string },
  clock: Clock,
): Promise<'accepted' | 'refused' | 'unreachable'> {
  const client = new MqttClient(() => openBrokerSocket(url, socketOptions(ca, clock)), {
    protocolVersion: 4,
    reconnectPeriod: 0,
    clientId: user,
    username: user,
    password,
  })
  return new Promise((resolve) => {
    const cancel = clock.after(TIMEOUT_MS, () => end('unreachable'))
    function end(outcome: 'accepted' | 'refused' | 'unreachable'): void {
      cancel()
      client.end(true)
      resolve(outcome)
    }
    client.on('connect', () => end('accepted'))
    client.on('error', (error) =>
      end('code' in error && REFUSALS.includes(error.code) ? 'refused' : 'unreachable'),
    )
    client.on('close', () => end('unreachable'))
  })
}

const ITERATIONS = 101
const SALT_BYTES = 12
const HASH_BYTES = 64

/** A line of Mosquitto's password file, as `mosquitto_passwd` writes it: `$7$` is PBKDF2 with SHA-512. */
export function mosquittoLine(user: string, password: string, random: Random): string {
  const salt = Buffer.from(random.bytes(SALT_BYTES))
  const hash = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, 'sha512')
  return `${user}:$7$${ITERATIONS}$${salt.toString('base64')}$${hash.toString('base64')}`
}
