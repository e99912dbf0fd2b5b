import { MqttClient } from 'mqtt'
import type { Clock, Random } from '../../protocol/model/runtime.ts'
import { openBrokerSocket } from '../../protocol/mqtt/broker-socket.ts'
import { socketOptions } from './broker-external.ts'
import { pbkdf2Sync } from 'node:crypto'

const TIMEOUT_MS = 5000
/** MQTT 3.1.1 §3.2.2.3: identifier rejected, bad user name or password, not authorized. */
const REFUSALS = [2, 4, 5]
/** Node's code if the broker refuses the client's certificate during the handshake (TLS 1.2). */
const TLS_ALERT = /^ERR_SSL_.*_ALERT_/

/** A hub's password, or its certificate and key (PEM). */
export type HubCredential = { user: string; url: string; ca: string | undefined } & (
  { password: string } | { client: { cert: string; key: string } }
)

export type LoginTrial = 'accepted' | 'refused' | 'unreachable'

/**
 * Whether a broker accepts a hub's password or certificate. The connection uses the hub's client id. So, if the broker
 * accepts it, it ends the hub's own connection.
 */
export function tryLogin({ url, ca, user, ...credential }: HubCredential, clock: Clock): Promise<LoginTrial> {
  // With TLS 1.3 a broker refuses a certificate after the handshake, and the reason may be lost with the connection.
  let isReached = false
  const options = {
    ...socketOptions(ca, clock),
    ...('client' in credential && {
      client: () => credential.client,
      onCertificate: () => (isReached = true),
    }),
  }
  const client = new MqttClient(() => openBrokerSocket(url, options), {
    protocolVersion: 4,
    reconnectPeriod: 0,
    clientId: user,
    // With a certificate the broker knows the user.
    ...('password' in credential && { username: user, password: credential.password }),
  })
  return new Promise((resolve) => {
    const cancel = clock.after(TIMEOUT_MS, () => end('unreachable'))
    function end(outcome: LoginTrial): void {
      cancel()
      client.end(true)
      resolve(outcome)
    }
    client.on('connect', () => end('accepted'))
    client.on('error', (error) => {
      const { code } = error as { code?: number | string }
      const isRefused = typeof code === 'number' ? REFUSALS.includes(code) : TLS_ALERT.test(code ?? '')
      end(isRefused || isReached ? 'refused' : 'unreachable')
    })
    client.on('close', () => end(isReached ? 'refused' : 'unreachable'))
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
