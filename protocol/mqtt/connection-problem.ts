/**
 * The reason for a failed connection to a broker, in words for the person who has to act. Errors of Node, OpenSSL and mqtt.js name
 * neither the setting nor the remedy.
 */

interface Fields {
  code?: string
  errors?: unknown
  hostname?: string
  address?: string
  port?: number
}

/** The answer of brokers to a wrong user or password, in the words of mqtt.js. Brokers do not name the wrong part. */
const LOGIN = /^Connection refused: (Not authorized|Bad username or password|Identifier rejected)/

/** An error with a message in words. It has a code: mqtt.js reports no other errors. */
export class ConnectionProblem extends Error {
  override readonly name = 'ConnectionProblem'
  readonly code = 'BROKER_PROBLEM'
}

/** Whether the reason is that the broker refuses user and password. */
export const isLoginRefused = (reason: string): boolean =>
  reason.startsWith(LOGIN_WORDS) || LOGIN.test(reason)
const LOGIN_WORDS = 'the broker refuses this user name or password'

export function connectionProblem(error: Error): string {
  const fields = error as Fields
  // Node tries each address of a name and reports all failures together.
  const first: unknown = Array.isArray(fields.errors) ? fields.errors[0] : undefined
  if (first instanceof Error) return connectionProblem(first)
  if (LOGIN.test(error.message)) return `${LOGIN_WORDS} (${error.message.replace(/^[^:]*: /, '')})`
  if (/^connack timeout$/.test(error.message)) return 'the broker accepts the connection and does not answer'
  const name = fields.hostname ?? fields.address ?? 'the broker'
  const place = fields.port === undefined ? name : `${name} port ${fields.port}`
  const words = wordsOf(fields.code ?? '', name, place)
  if (words !== undefined) return `${words} (${fields.code})`
  return error.message === '' ? (fields.code ?? error.name) : error.message
}

function wordsOf(code: string, name: string, place: string): string | undefined {
  switch (code) {
    case 'ENOTFOUND':
      return `the name ${name} is unknown: check MQTT_URL and the name server (DNS)`
    case 'EAI_AGAIN':
      return `the name ${name} cannot be looked up: the name server (DNS) does not answer`
    case 'ECONNREFUSED':
      return `${place} refuses connections: no broker listens there`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${place} cannot be reached: there is no network, or no route to it`
    case 'ETIMEDOUT':
      return `${place} does not answer`
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the broker, or something before it, ended the connection'
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return 'the port of MQTT_URL does not speak TLS: use mqtt:// or another port'
    default:
      return undefined
  }
}
