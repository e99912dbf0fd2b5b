/**
 * The reason of a failed connection to a broker, or to the cloud, for the person who must act. Errors of Node, OpenSSL and
 * mqtt.js name neither the setting nor the remedy.
 */

/** The program that did not answer, and the setting that names its address. */
interface Peer {
  name: 'broker' | 'cloud'
  setting: string
}
const broker: Peer = { name: 'broker', setting: 'MQTT_URL' }

interface Fields {
  code?: string
  errors?: unknown
  hostname?: string
  address?: string
  port?: number
}

/**
 * The answer of brokers to a wrong user or password, as mqtt.js words it. Brokers do not report which of them is wrong.
 */
const LOGIN = /^Connection refused: (Not authorized|Bad username or password|Identifier rejected)/

/** An error with a readable message. It has a code, because mqtt.js reports only errors with a code. */
export class ConnectionProblem extends Error {
  override readonly name = 'ConnectionProblem'
  readonly code = 'BROKER_PROBLEM'
}

/** Whether the broker refused user and password. */
export const isLoginRefused = (reason: string): boolean => reason.startsWith(LOGIN_TEXT) || LOGIN.test(reason)
const LOGIN_TEXT = 'the broker refuses this user name or password'

/**
 * Whether the broker refused the client's certificate because it is revoked. Other refusals of a certificate may pass: Mosquitto
 * refuses every certificate as expired while its list of revoked ones is too old.
 */
export const isCertificateRevoked = (reason: string): boolean =>
  reason.startsWith(`the broker ${REFUSES}: ${certificateAlerts['CERTIFICATE_REVOKED']}`)
const REFUSES = 'refuses the client certificate'

export function connectionProblem(error: Error, peer = broker): string {
  const fields = error as Fields
  // Node tries each address of a name and reports all failures together.
  const first: unknown = Array.isArray(fields.errors) ? fields.errors[0] : undefined
  if (first instanceof Error) return connectionProblem(first, peer)
  if (LOGIN.test(error.message)) return `${LOGIN_TEXT} (${error.message.replace(/^[^:]*: /, '')})`
  if (/^connack timeout$/.test(error.message)) return 'the broker accepts the connection and does not answer'
  const name = fields.hostname ?? fields.address ?? `the ${peer.name}`
  const place = fields.port === undefined ? name : `${name} port ${fields.port}`
  const words = wordsOf(fields.code ?? '', { name, place, peer })
  if (words !== undefined) return `${words} (${fields.code})`
  return error.message === '' ? (fields.code ?? error.name) : error.message
}

/** Alerts of TLS about the client's certificate. The versions of OpenSSL write different names before `ALERT`. */
const ALERT = /^ERR_SSL_.*_ALERT_(.+)$/
const certificateAlerts: Readonly<Record<string, string>> = {
  CERTIFICATE_EXPIRED: 'it has expired',
  CERTIFICATE_REVOKED: 'it is revoked',
  CERTIFICATE_REQUIRED: 'it is absent',
  CERTIFICATE_UNKNOWN: 'it is not accepted',
  BAD_CERTIFICATE: 'it is not accepted',
  UNKNOWN_CA: 'the broker does not know its authority',
}

function wordsOf(
  code: string,
  { name, place, peer }: { name: string; place: string; peer: Peer },
): string | undefined {
  const alert = certificateAlerts[ALERT.exec(code)?.[1] ?? '']
  if (alert !== undefined) return `the ${peer.name} ${REFUSES}: ${alert}`
  switch (code) {
    case 'ENOTFOUND':
      return `the name ${name} is unknown: check ${peer.setting} and the name server (DNS)`
    case 'EAI_AGAIN':
      return `the name ${name} cannot be looked up: the name server (DNS) does not answer`
    case 'ECONNREFUSED':
      return `${place} refuses connections: no ${peer.name} listens there`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${place} cannot be reached: there is no network, or no route to it`
    case 'ETIMEDOUT':
      return `${place} does not answer`
    case 'ECONNRESET':
    case 'EPIPE':
      return `the ${peer.name}, or something before it, ended the connection`
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return `the port of ${peer.setting} does not speak TLS: use ${peer === broker ? 'mqtt:// or ' : ''}another port`
    default:
      return undefined
  }
}
