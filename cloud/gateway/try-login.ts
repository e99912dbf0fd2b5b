import { MqttClient } from 'mqtt'
import type { Clock } from '../../protocol/model/runtime.ts'
import { openBrokerSocket } from '../../protocol/mqtt/broker-socket.ts'
import { socketOptions } from './broker-external.ts'

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
