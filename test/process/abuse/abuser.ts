import { request } from 'node:http'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { Chance } from '../../simulation/chance.ts'
import type { Plant } from '../chaos/plant.ts'
import type { Tally } from '../chaos/tally.ts'

/** An abuser's access to the installation, and the abuser's knowledge. */
export interface AbuseWorld {
  plant: Plant
  runtime: Runtime
  chance: Chance
  tally: Tally
  products: readonly number[]
  isOpen: () => boolean
  ask: Ask
}

export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  bearer?: string | undefined
  headers?: Readonly<Record<string, string>>
  /** JSON, or text that is sent unchanged. */
  body?: object | string
}

export interface Answer {
  /** 0 if no answer came. */
  status: number
  code: string | undefined
  body: Readonly<Record<string, unknown>>
}

/** One request from one of the abuser's own addresses, without a retry. */
export type Ask = (name: string, call: Call) => Promise<Answer>

/** The abuser's networks. Honest customers come from another network. */
const NETWORKS = Array.from({ length: 16 }, (_, index) => `127.0.66.${index + 1}`)
const TIMEOUT_MS = 15_000

export function createAsk(url: string, runtime: Runtime, chance: Chance, tally: Tally): Ask {
  const { hostname: host, port } = new URL(url)
  return (name, { method, path, bearer, headers, body }) =>
    new Promise((resolve) => {
      const end = (status: number, text: string): void => {
        const answer = parsed(text)
        const { error } = answer as { error?: { code?: string } }
        tally.hit(`answer ${name} ${status}${error?.code === undefined ? '' : ` ${error.code}`}`)
        resolve({ status, code: error?.code, body: answer })
      }
      const call = request({
        host,
        port,
        method,
        path,
        localAddress: chance.pick(NETWORKS),
        agent: false,
        timeout: TIMEOUT_MS,
        headers: {
          ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          ...(method === 'POST' && { 'Idempotency-Key': uuidv7(runtime) }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
      })
      call.on('timeout', () => call.destroy())
      call.on('error', () => end(0, ''))
      call.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part: string) => (text += part))
        response.on('end', () => end(response.statusCode ?? 0, text))
        response.on('error', () => end(0, ''))
      })
      call.end(typeof body === 'object' ? JSON.stringify(body) : body)
    })
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** An identity token of the demo's issuer. */
export async function tokenOf(ask: Ask, sub: string, claims: object): Promise<string | undefined> {
  const { body } = await ask('token', {
    method: 'POST',
    path: '/demo/identity/token',
    body: { sub, ...claims },
  })
  return typeof body['access_token'] === 'string' ? body['access_token'] : undefined
}
